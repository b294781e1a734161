import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.stream.Collectors;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewPartitionReassignment;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.QuorumInfo;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.TopicPartition;

/** Kafka's tools for clusters: on one node what one node can show, and on several also what moves between them. */
final class ClusterTools {
    private static final String TOOLS = "org.apache.kafka.tools.";
    private static final String TOPICS = TOOLS + "TopicCommand";
    private static final String REASSIGN = TOOLS + "reassign.ReassignPartitionsCommand";
    private static final String ELECT = TOOLS + "LeaderElectionCommand";
    private static final String QUORUM = TOOLS + "MetadataQuorumCommand";
    private static final String CONFIGS = "kafka.admin.ConfigCommand";
    private static final String CLUSTER = TOOLS + "ClusterTool";

    private final Admin admin;
    private List<Integer> brokers;

    ClusterTools(Admin admin) {
        this.admin = admin;
    }

    void perform() throws Exception {
        brokers = admin.describeCluster().nodes().get().stream().map(Node::id).sorted().toList();
        Compat.scenario("kafka-topics by the state of partitions", this::states);
        Compat.scenario("kafka-reassign-partitions generate, execute, verify, list, cancel", this::reassignInPlace);
        Compat.scenario("kafka-leader-election", this::electNothing);
        Compat.scenario("kafka-cluster list-endpoints, unregister", this::endpoints);
        Compat.scenario("kafka-metadata-quorum refuses strangers", this::strangers);
        if (brokers.size() < 3) return;
        Compat.scenario("kafka-reassign-partitions moves replicas under a throttle", this::move);
        Compat.scenario("kafka-reassign-partitions cancels", this::cancel);
        Compat.scenario("kafka-leader-election gives leadership back", this::preferred);
        if (voters().stream().allMatch(voter -> voter.replicaDirectoryId().equals(org.apache.kafka.common.Uuid.ZERO_UUID))) return;
        Compat.scenario("kafka-metadata-quorum remove-controller, add-controller", this::voting);
    }

    private static Tool call(String className, String... args) throws Exception {
        var all = new ArrayList<>(List.of("--bootstrap-server", Compat.address));
        if (className.equals(CLUSTER)) all.add(0, args[0]);
        all.addAll(Arrays.asList(args).subList(className.equals(CLUSTER) ? 1 : 0, args.length));
        return Tool.run(className, all.toArray(String[]::new));
    }

    private static String named(String name) {
        return "java-cluster-" + name + "-" + Compat.UNIQUE;
    }

    /** @param replicas of each partition, in order. */
    private String topic(String name, List<List<Integer>> replicas) throws Exception {
        var assignments = new java.util.HashMap<Integer, List<Integer>>();
        for (var i = 0; i < replicas.size(); i++) assignments.put(i, replicas.get(i));
        admin.createTopics(List.of(new NewTopic(named(name), assignments))).all().get();
        return named(name);
    }

    private void fill(String topic, int count) throws Exception {
        try (var producer = Clients.producer(Map.of("acks", "all", "linger.ms", 20))) {
            for (var i = 0; i < count; i++) {
                producer.send(new org.apache.kafka.clients.producer.ProducerRecord<>(topic, 0, null, new byte[1000]));
            }
        }
    }

    private static String json(String topic, List<List<Integer>> replicas) {
        var partitions = new ArrayList<String>();
        for (var i = 0; i < replicas.size(); i++) {
            partitions.add("{\"topic\":\"" + topic + "\",\"partition\":" + i + ",\"replicas\":" + replicas.get(i) + "}");
        }
        return "{\"version\":1,\"partitions\":[" + String.join(",", partitions) + "]}";
    }

    private static String file(String text) throws Exception {
        var path = Files.createTempFile("compat", ".json");
        path.toFile().deleteOnExit();
        Files.writeString(path, text);
        return path.toString();
    }

    private List<Integer> replicasOf(String topic) throws Exception {
        var described = admin.describeTopics(List.of(topic)).allTopicNames().get().get(topic);
        return described.partitions().get(0).replicas().stream().map(Node::id).toList();
    }

    private int leaderOf(String topic) throws Exception {
        var leader = admin.describeTopics(List.of(topic)).allTopicNames().get().get(topic).partitions().get(0).leader();
        return leader == null ? -1 : leader.id();
    }

    private void states() throws Exception {
        var name = topic("states", List.of(List.of(brokers.get(0))));
        for (var state : List.of("--under-replicated-partitions", "--unavailable-partitions", "--under-min-isr-partitions")) {
            var tool = call(TOPICS, "--describe", "--topic", name, state).succeeds();
            Compat.holds(!tool.output().contains("Partition: 0"), state + " names a healthy partition: " + tool.output());
        }
        call(TOPICS, "--describe", "--topic", name, "--at-min-isr-partitions").succeeds()
            .says("Partition: 0\\s+Leader: " + brokers.get(0) + "\\s+Replicas: \\d+\\s+Isr: \\d+\\s+Elr:\\s+LastKnownElr:");
        call(CONFIGS, "--entity-type", "topics", "--entity-name", name, "--alter",
            "--add-config", "min.insync.replicas=2").succeeds();
        call(TOPICS, "--describe", "--topic", name, "--under-min-isr-partitions").succeeds().says("Partition: 0");
    }

    private void reassignInPlace() throws Exception {
        var first = brokers.get(0);
        var name = topic("in-place", List.of(List.of(first), List.of(first)));
        var topics = file("{\"version\":1,\"topics\":[{\"topic\":\"" + name + "\"}]}");
        var list = brokers.stream().map(String::valueOf).collect(Collectors.joining(","));
        call(REASSIGN, "--topics-to-move-json-file", topics, "--broker-list", list, "--generate").succeeds()
            .says("Current partition replica assignment", "Proposed partition reassignment configuration", "\"topic\":\"" + name + "\",\"partition\":0");
        var same = file(json(name, List.of(List.of(first), List.of(first))));
        call(REASSIGN, "--reassignment-json-file", same, "--execute").succeeds()
            .says("Save this to use as the --reassignment-json-file option during rollback",
                "Successfully started partition reassignments for " + name + "-0," + name + "-1");
        call(REASSIGN, "--reassignment-json-file", same, "--verify").succeeds()
            .says("Reassignment of partition " + name + "-0 is completed", "Clearing broker-level throttles", "Clearing topic-level throttles");
        call(REASSIGN, "--list").succeeds().says("No partition reassignments found");
        call(REASSIGN, "--reassignment-json-file", same, "--cancel").succeeds()
            .says("None of the specified partition reassignments are active");
        call(REASSIGN, "--reassignment-json-file", file(json(name, List.of(List.of(77)))), "--execute").fails().says("Unknown broker id 77");
    }

    private void electNothing() throws Exception {
        var name = topic("elect", List.of(List.of(brokers.get(0))));
        call(ELECT, "--election-type", "preferred", "--topic", name, "--partition", "0").succeeds()
            .says("Valid replica already elected for partitions.*" + name + "-0");
        call(ELECT, "--election-type", "unclean", "--topic", name, "--partition", "0").succeeds()
            .says("Valid replica already elected for partitions.*" + name + "-0");
        call(ELECT, "--election-type", "preferred", "--all-topic-partitions").succeeds();
        call(ELECT, "--election-type", "preferred", "--topic", name, "--partition", "7").fails().says("UnknownTopicOrPartition|does not exist|Unknown");
    }

    private void endpoints() throws Exception {
        call(CLUSTER, "list-endpoints").succeeds().says("ID\\s+HOST\\s+PORT\\s+RACK\\s+STATE", brokers.get(0) + "\\s+\\S+\\s+\\d+\\s+\\S+\\s+unfenced");
        call(CLUSTER, "list-endpoints", "--include-fenced-brokers").succeeds().says(brokers.get(0) + "\\s+\\S+\\s+\\d+");
        call(CLUSTER, "unregister", "--id", "77").fails().says("BrokerIdNotRegistered");
    }

    private void strangers() throws Exception {
        var nobody = org.apache.kafka.common.Uuid.randomUuid().toString();
        call(QUORUM, "remove-controller", "--controller-id", "77", "--controller-directory-id", nobody).fails()
            .says("VoterNotFound|UnsupportedVersion|InvalidRequest");
    }

    private void move() throws Exception {
        int a = brokers.get(0), b = brokers.get(1), c = brokers.get(2);
        var name = topic("move", List.of(List.of(a, b)));
        fill(name, 3000);
        var target = file(json(name, List.of(List.of(c, a))));
        call(REASSIGN, "--reassignment-json-file", target, "--execute", "--throttle", "3000000").succeeds()
            .says("The inter-broker throttle limit was set to 3000000 B/s", "Successfully started partition reassignment for " + name + "-0");
        verified(target, name);
        Compat.same(replicasOf(name), List.of(c, a), "replicas");
        Compat.same(Clients.read(name, 3000).size(), 3000, "records");
        var configs = call(CONFIGS, "--entity-type", "topics", "--entity-name", name, "--describe").succeeds();
        Compat.holds(!configs.output().contains("throttled"), "the throttle is left behind: " + configs.output());
    }

    private void verified(String target, String name) throws Exception {
        var last = new Tool[1];
        Compat.until("the reassignment is verified", () -> last[0] != null && last[0].output().contains("Reassignment of partition " + name + "-0 is completed"), () -> {
            if (last[0] != null) Thread.sleep(200);
            last[0] = call(REASSIGN, "--reassignment-json-file", target, "--verify").succeeds();
            return null;
        });
    }

    private void cancel() throws Exception {
        int a = brokers.get(0), b = brokers.get(1), c = brokers.get(2);
        var name = topic("cancel", List.of(List.of(a, b)));
        fill(name, 20_000);
        var target = file(json(name, List.of(List.of(a, c))));
        call(REASSIGN, "--reassignment-json-file", target, "--execute", "--throttle", "100000").succeeds();
        call(REASSIGN, "--list").succeeds().says("Current partition reassignments:", name + "-0: replicas: .*adding: " + c + "\\.? removing: " + b);
        call(REASSIGN, "--reassignment-json-file", target, "--verify").says("Reassignment of partition " + name + "-0 is still in progress");
        call(REASSIGN, "--reassignment-json-file", target, "--cancel").succeeds().says("Successfully cancelled partition reassignment for: " + name + "-0");
        call(REASSIGN, "--list").succeeds().says("No partition reassignments found");
        Compat.same(replicasOf(name), List.of(a, b), "replicas");
    }

    private void preferred() throws Exception {
        int a = brokers.get(0), b = brokers.get(1);
        var name = topic("preferred", List.of(List.of(a, b)));
        Compat.until("both are in sync", () -> isr(name) == 2, () -> {
            Thread.sleep(50);
            return null;
        });
        var partition = new TopicPartition(name, 0);
        admin.alterPartitionReassignments(Map.of(partition, Optional.of(new NewPartitionReassignment(List.of(b, a))))).all().get();
        Compat.until("the order has changed", () -> first(name) == b, () -> {
            Thread.sleep(50);
            return null;
        });
        call(ELECT, "--election-type", "preferred", "--topic", name, "--partition", "0").succeeds()
            .says("Successfully completed leader election \\(PREFERRED\\) for partitions.*" + name + "-0|Valid replica already elected");
        Compat.until("the preferred replica leads", () -> leader(name) == b, () -> {
            Thread.sleep(50);
            return null;
        });
    }

    private int isr(String name) {
        try {
            return admin.describeTopics(List.of(name)).allTopicNames().get().get(name).partitions().get(0).isr().size();
        } catch (Exception error) {
            return -1;
        }
    }

    private int first(String name) {
        try {
            return replicasOf(name).get(0);
        } catch (Exception error) {
            return -1;
        }
    }

    private int leader(String name) {
        try {
            return leaderOf(name);
        } catch (Exception error) {
            return -1;
        }
    }

    private List<QuorumInfo.ReplicaState> voters() throws Exception {
        return admin.describeMetadataQuorum().quorumInfo().get().voters();
    }

    private void voting() throws Exception {
        var quorum = admin.describeMetadataQuorum().quorumInfo().get();
        var voter = quorum.voters().stream().filter(each -> each.replicaId() != quorum.leaderId()).findFirst().orElseThrow();
        var endpoint = quorum.nodes().get(voter.replicaId()).endpoints().get(0);
        var id = Integer.toString(voter.replicaId());
        var directory = voter.replicaDirectoryId().toString();
        call(QUORUM, "remove-controller", "--controller-id", id, "--controller-directory-id", directory).succeeds()
            .says("Removed\\s+KRaft controller " + id + " with directory id " + directory);
        Compat.until("it votes no more", () -> votes(voter.replicaId()) == 0, () -> {
            Thread.sleep(100);
            return null;
        });
        // The tool reads who the controller is from its configuration and folder, which are not here.
        var folder = Files.createTempDirectory("compat-controller");
        Files.writeString(folder.resolve("meta.properties"), "version=1\ncluster.id=" + admin.describeCluster().clusterId().get()
            + "\nnode.id=" + id + "\ndirectory.id=" + directory + "\n");
        var config = folder.resolve("controller.properties");
        Files.writeString(config, "process.roles=controller\nnode.id=" + id + "\nlog.dirs=" + folder + "\ncontroller.listener.names=" + endpoint.listener()
            + "\nlisteners=" + endpoint.listener() + "://" + endpoint.host() + ":" + endpoint.port()
            + "\nlistener.security.protocol.map=" + endpoint.listener() + ":PLAINTEXT\ncontroller.quorum.bootstrap.servers=" + endpoint.host() + ":" + endpoint.port() + "\n");
        call(QUORUM, "--command-config", config.toString(), "add-controller").succeeds().says("Added controller " + id);
        Compat.until("it votes again", () -> votes(voter.replicaId()) == 1, () -> {
            Thread.sleep(100);
            return null;
        });
        for (var each : List.of(config, folder.resolve("meta.properties"), folder)) Files.deleteIfExists((Path) each);
    }

    private long votes(int id) {
        try {
            return voters().stream().filter(voter -> voter.replicaId() == id).count();
        } catch (Exception error) {
            return -1;
        }
    }
}
