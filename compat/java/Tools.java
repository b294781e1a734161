import java.nio.file.Files;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.common.acl.AclBindingFilter;
import org.apache.kafka.common.errors.UnsupportedVersionException;

/** Kafka's own command line tools, each called as a user would. */
final class Tools {
    private static final String TOOLS = "org.apache.kafka.tools.";
    private static final String TOPICS = TOOLS + "TopicCommand";
    private static final String CONFIGS = "kafka.admin.ConfigCommand";
    private static final String GROUPS = TOOLS + "consumer.group.ConsumerGroupCommand";
    private static final String OFFSETS = TOOLS + "GetOffsetShell";
    private static final String PRODUCER = TOOLS + "ConsoleProducer";
    private static final String CONSUMER = TOOLS + "consumer.ConsoleConsumer";

    private final Admin admin;

    Tools(Admin admin) {
        this.admin = admin;
    }

    void perform() {
        Compat.scenario("kafka-broker-api-versions", () -> call(TOOLS + "BrokerApiVersionsCommand").succeeds()
            .says("id: \\d+", "Produce\\(0\\): .*\\[usable: \\d+\\]", "Fetch\\(1\\): .*\\[usable: \\d+\\]"));
        Compat.scenario("kafka-cluster", () -> call(TOOLS + "ClusterTool", "cluster-id").succeeds().says("Cluster ID: \\S{22}"));
        Compat.scenario("kafka-metadata-quorum describe", this::quorum);
        Compat.scenario("kafka-features describe", () ->
            call(TOOLS + "FeatureCommand", "describe").succeeds().says("Feature: metadata.version\\s.*FinalizedVersionLevel: \\d\\.\\d"));
        Compat.scenario("kafka-topics", this::topics);
        Compat.scenario("kafka-configs", this::configs);
        Compat.scenario("kafka-console-producer, kafka-console-consumer", this::console);
        Compat.scenario("kafka-get-offsets, kafka-delete-records", this::offsets);
        Compat.scenario("kafka-log-dirs", this::logDirs);
        Compat.scenario("kafka-consumer-groups", this::groups);
        Compat.scenario("kafka-verifiable-producer, kafka-verifiable-consumer", this::verifiable);
        Compat.scenario("kafka-producer-perf-test, kafka-consumer-perf-test", this::performance);
        Compat.scenario("kafka-e2e-latency", this::latency);
        Compat.scenario("ClientCompatibilityTest", this::compatibility);
    }

    /** A tool with the server's address put before its own arguments. */
    private static Tool call(String className, String... args) throws Exception {
        return callWith("", className, args);
    }

    private static Tool callWith(String input, String className, String... args) throws Exception {
        var all = new ArrayList<>(List.of("--bootstrap-server", Compat.address));
        // These two want their sub-command after the address, and only there.
        if (className.endsWith("ClusterTool")) all = new ArrayList<>(List.of(args[0], "--bootstrap-server", Compat.address));
        else all.addAll(Arrays.asList(args));
        return Tool.runWith(input, className, all.toArray(String[]::new));
    }

    private static String named(String name) {
        return "java-tool-" + name + "-" + Compat.UNIQUE;
    }

    private String topic(String name, int partitions) throws Exception {
        admin.createTopics(List.of(new NewTopic(named(name), partitions, (short) 1))).all().get();
        return named(name);
    }

    private void quorum() throws Exception {
        call(TOOLS + "MetadataQuorumCommand", "describe", "--status").succeeds()
            .says("ClusterId:\\s+\\S{22}", "LeaderId:\\s+\\d+", "LeaderEpoch:\\s+\\d+", "HighWatermark:\\s+\\d+", "CurrentVoters:\\s+\\[");
        call(TOOLS + "MetadataQuorumCommand", "describe", "--replication").succeeds().says("NodeId\\s.*LogEndOffset", "Leader\\s*$");
    }

    private void topics() throws Exception {
        var name = named("topics");
        call(TOPICS, "--create", "--topic", name, "--partitions", "2", "--replication-factor", "1", "--config", "retention.ms=3600000")
            .succeeds().says("Created topic " + name);
        call(TOPICS, "--create", "--topic", name).fails().says("already exists");
        call(TOPICS, "--create", "--topic", name, "--if-not-exists").succeeds();
        call(TOPICS, "--create", "--topic", "no good name!").fails().says("(?i)invalid");
        call(TOPICS, "--create", "--topic", name + "-3", "--replication-factor", "3").fails().says("(?i)replication factor");
        call(TOPICS, "--list").succeeds().says("^" + name + "$");
        call(TOPICS, "--describe", "--topic", name).succeeds()
            .says("Topic: " + name + "\\s+TopicId: \\S{22}\\s+PartitionCount: 2\\s+ReplicationFactor: 1\\s+Configs: .*retention.ms=3600000",
                "Partition: 1\\s+Leader: \\d+\\s+Replicas: \\d+\\s+Isr: \\d+");
        call(TOPICS, "--alter", "--topic", name, "--partitions", "4").succeeds();
        call(TOPICS, "--alter", "--topic", name, "--partitions", "3").fails().says("(?i)not be an increase");
        call(TOPICS, "--describe", "--topic", name).succeeds().says("PartitionCount: 4", "Partition: 3\\s+Leader: \\d+");
        call(TOPICS, "--describe", "--unavailable-partitions").succeeds();
        call(TOPICS, "--delete", "--topic", name).succeeds();
        call(TOPICS, "--describe", "--topic", name).fails().says("does not exist");
    }

    private void configs() throws Exception {
        var name = topic("configs", 1);
        String[] entity = {"--entity-type", "topics", "--entity-name", name};
        call(CONFIGS, with(entity, "--alter", "--add-config", "retention.ms=7200000,cleanup.policy=[compact,delete]")).succeeds()
            .says("Completed updating config");
        call(CONFIGS, with(entity, "--describe")).succeeds()
            .says("retention.ms=7200000 sensitive=false synonyms=\\{DYNAMIC_TOPIC_CONFIG:retention.ms=7200000", "cleanup.policy=compact,delete");
        call(CONFIGS, with(entity, "--describe", "--all")).succeeds().says("segment.bytes=1073741824", "min.insync.replicas=1");
        call(CONFIGS, with(entity, "--alter", "--delete-config", "retention.ms")).succeeds();
        Compat.holds(!call(CONFIGS, with(entity, "--describe")).succeeds().output().contains("retention.ms"), "retention.ms is shown after it was deleted");
        call(CONFIGS, with(entity, "--alter", "--add-config", "retention.ms=soon")).fails().says("InvalidConfigurationException");
        call(CONFIGS, with(entity, "--alter", "--add-config", "no.such.key=1")).fails().says("InvalidConfigurationException");
        var node = Integer.toString(admin.describeCluster().nodes().get().iterator().next().id());
        String[] broker = {"--entity-type", "brokers", "--entity-name", node};
        call(CONFIGS, with(broker, "--describe", "--all")).succeeds().says("log.segment.bytes=1073741824", "(node|broker).id=" + node);
        call(CONFIGS, "--entity-type", "brokers", "--entity-default", "--alter", "--add-config", "log.retention.ms=86400000").succeeds();
        call(CONFIGS, "--entity-type", "brokers", "--entity-default", "--describe").succeeds().says("log.retention.ms=86400000");
        call(CONFIGS, with(entity, "--describe", "--all")).succeeds()
            .says("retention.ms=86400000 .*DYNAMIC_DEFAULT_BROKER_CONFIG:log.retention.ms=86400000");
        call(CONFIGS, "--entity-type", "brokers", "--entity-default", "--alter", "--delete-config", "log.retention.ms").succeeds();
    }

    private static String[] with(String[] first, String... more) {
        var all = new ArrayList<>(Arrays.asList(first));
        all.addAll(Arrays.asList(more));
        return all.toArray(String[]::new);
    }

    private void console() throws Exception {
        var name = named("console");
        var input = "h1:a,h2:b\tkey-1\tvalue one\nh1:c\tkey-2\tNULL\nh1:d\tkey-3\t\n";
        callWith(input, PRODUCER, "--topic", name, "--reader-property", "parse.key=true", "--reader-property", "parse.headers=true",
            "--reader-property", "null.marker=NULL", "--compression-codec", "zstd").succeeds();
        callWith("plain\n", PRODUCER, "--topic", name, "--command-property", "acks=1").succeeds();
        var read = call(CONSUMER, "--topic", name, "--from-beginning", "--max-messages", "4", "--timeout-ms", "15000",
            "--formatter-property", "print.key=true", "--formatter-property", "print.headers=true", "--formatter-property", "print.offset=true",
            "--formatter-property", "null.literal=<null>").succeeds();
        read.says("h1:a,h2:b\tkey-1\tvalue one$", "h1:c\tkey-2\t<null>$", "h1:d\tkey-3\t$", "NO_HEADERS\t<null>\tplain$", "Processed a total of 4 messages");
        call(CONSUMER, "--topic", name, "--partition", "0", "--offset", "earliest", "--timeout-ms", "1500").succeeds();
        call(CONSUMER, "--topic", name, "--group", named("console-group"), "--from-beginning", "--max-messages", "4", "--timeout-ms", "15000")
            .succeeds().says("Processed a total of 4 messages");
        call(CONSUMER, "--topic", name, "--group", named("console-group"), "--from-beginning", "--timeout-ms", "1500")
            .says("Processed a total of 0 messages");
    }

    /** @param count records `0` to `count - 1` in partition 0, one batch each second of their own time. */
    private void fill(String name, int count) throws Exception {
        try (var producer = Clients.producer(java.util.Map.of("linger.ms", 100))) {
            for (var i = 0; i < count; i++) {
                producer.send(new org.apache.kafka.clients.producer.ProducerRecord<>(name, 0, 1_700_000_000_000L + i * 1000L, null, Clients.bytes("" + i)));
            }
        }
    }

    private void offsets() throws Exception {
        var name = topic("offsets", 2);
        fill(name, 50);
        call(OFFSETS, "--topic", name).succeeds().says("^" + name + ":0:50$", "^" + name + ":1:0$");
        call(OFFSETS, "--topic", name, "--time", "earliest").succeeds().says("^" + name + ":0:0$");
        call(OFFSETS, "--topic", name, "--time", "max-timestamp").succeeds().says("^" + name + ":0:49$");
        call(OFFSETS, "--topic", name, "--time", Long.toString(1_700_000_000_000L + 17_000)).succeeds().says("^" + name + ":0:17$");
        call(OFFSETS, "--topic", name, "--time", "earliest-local").succeeds().says("^" + name + ":0:0$");
        call(OFFSETS, "--topic", name, "--time", "latest-tiered").succeeds();
        call(OFFSETS, "--topic", name, "--partitions", "0").succeeds().says("^" + name + ":0:50$");
        var file = Files.createTempFile("offsets", ".json");
        Files.writeString(file, "{\"version\":1,\"partitions\":[{\"topic\":\"" + name + "\",\"partition\":0,\"offset\":20},"
            + "{\"topic\":\"" + name + "\",\"partition\":1,\"offset\":-1}]}");
        call(TOOLS + "DeleteRecordsCommand", "--offset-json-file", file.toString()).succeeds()
            .says("partition: " + name + "-0\\s+low_watermark: 20", "partition: " + name + "-1\\s+low_watermark: 0");
        Files.delete(file);
        call(OFFSETS, "--topic", name, "--time", "-2").succeeds().says("^" + name + ":0:20$");
    }

    private void logDirs() throws Exception {
        var name = topic("dirs", 1);
        fill(name, 10);
        call(TOOLS + "LogDirsCommand", "--describe", "--topic-list", name).succeeds()
            .says("\"partition\":\"" + name + "-0\"", "\"size\":[1-9]", "\"isFuture\":false", "\"error\":null");
    }

    private void groups() throws Exception {
        var name = topic("groups", 1);
        var group = named("group");
        fill(name, 100);
        call(CONSUMER, "--topic", name, "--group", group, "--from-beginning", "--max-messages", "60", "--timeout-ms", "15000",
            "--command-property", "max.poll.records=60").succeeds();
        String[] of = {"--group", group};
        call(GROUPS, "--list").succeeds().says("^" + group + "$");
        call(GROUPS, "--list", "--state").succeeds().says(group + "\\s+Empty");
        call(GROUPS, "--list", "--type").succeeds().says(group + "\\s+Classic");
        call(GROUPS, with(of, "--describe")).succeeds().says(group + "\\s+" + name + "\\s+0\\s+60\\s+100\\s+40\\s+-");
        call(GROUPS, with(of, "--describe", "--state")).succeeds().says(group + "\\s+.*Empty\\s+0");
        call(GROUPS, with(of, "--describe", "--members")).succeeds();
        reset(of, name, "--to-offset", "15").says(group + "\\s+" + name + "\\s+0\\s+15");
        reset(of, name, "--shift-by", "10").says("\\s25\\s*$");
        reset(of, name, "--to-earliest").says("\\s0\\s*$");
        reset(of, name, "--to-latest").says("\\s100\\s*$");
        reset(of, name, "--to-current").says("\\s100\\s*$");
        reset(of, name, "--to-datetime", "2023-11-14T22:13:50.000").says("\\s30\\s*$");
        reset(of, name, "--by-duration", "P9000D").says("\\s0\\s*$");
        call(GROUPS, with(of, "--reset-offsets", "--topic", name, "--to-latest", "--dry-run")).succeeds();
        call(GROUPS, with(of, "--describe")).succeeds().says(name + "\\s+0\\s+0\\s+100\\s+100");
        call(CONSUMER, "--topic", name, "--group", group, "--max-messages", "100", "--timeout-ms", "15000").succeeds()
            .says("Processed a total of 100 messages");
        try (var member = new Busy(group, name)) {
            member.await();
            call(GROUPS, with(of, "--describe", "--members", "--verbose")).succeeds().says(group + "\\s+compat-java\\S*\\s+/127.0.0.1");
            call(GROUPS, with(of, "--describe", "--state")).succeeds().says("range\\s+Stable\\s+1");
            call(GROUPS, with(of, "--delete")).says("(?i)not empty");
        }
        call(GROUPS, with(of, "--delete-offsets", "--topic", name)).succeeds().says("Successful");
        call(GROUPS, with(of, "--delete")).succeeds().says("successful");
        Compat.holds(!call(GROUPS, "--list").succeeds().output().contains(group), "the group is listed after it was deleted");
        call(TOOLS + "GroupsCommand", "--list").succeeds();
    }

    private static Tool reset(String[] of, String topic, String... to) throws Exception {
        return call(GROUPS, with(with(of, "--reset-offsets", "--topic", topic, "--execute"), to)).succeeds();
    }

    /** A group's only member, polled in the background as long as it is open. */
    private static final class Busy implements AutoCloseable {
        private volatile boolean stop;
        private volatile boolean owns;
        private final Thread thread;

        Busy(String group, String topic) {
            thread = new Thread(() -> {
                var settings = Clients.settings(java.util.Map.of("group.id", group, "partition.assignment.strategy",
                    "org.apache.kafka.clients.consumer.RangeAssignor", "enable.auto.commit", false));
                var bytes = new org.apache.kafka.common.serialization.ByteArrayDeserializer();
                try (var consumer = new org.apache.kafka.clients.consumer.KafkaConsumer<>(settings, bytes, bytes)) {
                    consumer.subscribe(List.of(topic));
                    while (!stop) {
                        consumer.poll(Duration.ofMillis(100));
                        owns = !consumer.assignment().isEmpty();
                    }
                }
            });
            thread.start();
        }

        void await() throws Exception {
            Compat.until("the member owns the partition", () -> owns, () -> {
                Thread.sleep(20);
                return null;
            });
        }

        @Override
        public void close() throws Exception {
            stop = true;
            thread.join();
        }
    }

    private void verifiable() throws Exception {
        var name = topic("verifiable", 2);
        Tool.inOwnJvm(TOOLS + "VerifiableProducer", "--bootstrap-server", Compat.address, "--topic", name, "--max-messages", "500", "--repeating-keys", "7").succeeds()
            .says("\"name\":\"startup_complete\"", "\"name\":\"tool_data\".*\"sent\":500.*\"acked\":500|\"acked\":500.*\"sent\":500");
        Tool.inOwnJvm(TOOLS + "VerifiableConsumer", "--bootstrap-server", Compat.address, "--topic", name, "--group-id", named("verifiable"), "--max-messages", "500", "--session-timeout", "10000")
            .succeeds().says("\"name\":\"partitions_assigned\"", "\"name\":\"records_consumed\"", "\"name\":\"offsets_committed\".*\"success\":true");
    }

    private void performance() throws Exception {
        var name = topic("performance", 3);
        for (var compression : List.of("none", "lz4")) {
            call(TOOLS + "ProducerPerformance", "--topic", name, "--num-records", "20000", "--record-size", "1000", "--throughput", "-1",
                "--command-property", "acks=all", "compression.type=" + compression).succeeds()
                .says("20000 records sent, .* records/sec .*99.9th");
        }
        call(TOOLS + "ConsumerPerformance", "--topic", name, "--num-records", "40000").succeeds().says(", 38\\.14\\d+, ", ", 40000, ");
    }

    private void latency() throws Exception {
        var name = topic("latency", 1);
        Tool.run(TOOLS + "EndToEndLatency", "--bootstrap-server", Compat.address, "--topic", name, "--num-records", "200", "--producer-acks", "all",
            "--record-size", "100").succeeds().says("Avg latency: \\d", "Percentiles: 50th = \\d+");
    }

    private void compatibility() throws Exception {
        var name = topic("compatibility", 1);
        var acls = "True";
        try {
            admin.describeAcls(AclBindingFilter.ANY).values().get();
        } catch (ExecutionException error) {
            // A server without access control says so, or does not have the request at all.
            if (error.getCause() instanceof UnsupportedVersionException) acls = "False";
        }
        call(TOOLS + "ClientCompatibilityTest", "--topic", name, "--offsets-for-times-supported", "True", "--cluster-id-supported", "True",
            "--expect-record-too-large-exception", "False", "--num-cluster-nodes", "1", "--create-topics-supported", "True",
            "--describe-acls-supported", acls, "--describe-configs-supported", "True", "--idempotent-producer-supported", "True").succeeds();
    }
}
