import java.io.*;
import java.util.*;
import java.util.stream.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Subscription;
import org.apache.kafka.clients.consumer.internals.*;
import org.apache.kafka.common.TopicPartition;

/**
 * Asks Kafka's assignors. A question per line: assignor, tab, topic=count,..., and per member another tab and
 * id|instance or empty|topic,...|topic:partition,...|generation. The answer: member=topic:partition,... by tabs, sorted.
 */
public class Assign {
    /** The sticky assignment before anything is withheld for a cooperative rebalance. */
    static class Sticky extends AbstractStickyAssignor {
        @Override public String name() { return "sticky"; }
        @Override protected MemberData memberData(Subscription s) { return new MemberData(s.ownedPartitions(), s.generationId()); }
    }

    public static void main(String[] args) throws IOException {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] parts = line.split("\t", -1);
            AbstractPartitionAssignor assignor = switch (parts[0]) {
                case "range" -> new RangeAssignor();
                case "roundrobin" -> new RoundRobinAssignor();
                case "cooperative-sticky" -> new CooperativeStickyAssignor();
                default -> new Sticky();
            };
            Map<String, Integer> counts = new HashMap<>();
            for (String each : list(parts[1])) counts.put(each.split("=")[0], Integer.parseInt(each.split("=")[1]));
            Map<String, Subscription> members = new HashMap<>();
            for (int i = 2; i < parts.length; i++) {
                String[] member = parts[i].split("\\|", -1);
                List<TopicPartition> owned = list(member[3]).stream()
                    .map(t -> new TopicPartition(t.split(":")[0], Integer.parseInt(t.split(":")[1]))).collect(Collectors.toList());
                Subscription subscription = new Subscription(list(member[2]), null, owned, Integer.parseInt(member[4]), Optional.empty());
                if (!member[1].isEmpty()) subscription.setGroupInstanceId(Optional.of(member[1]));
                members.put(member[0], subscription);
            }
            // Kafka gives its assignors only the topics that somebody subscribes to.
            counts.keySet().removeIf(topic -> members.values().stream().noneMatch(m -> m.topics().contains(topic)));
            System.out.println(assignor.assign(counts, members).entrySet().stream()
                .map(e -> e.getKey() + "=" + e.getValue().stream().map(t -> t.topic() + ":" + t.partition()).sorted().collect(Collectors.joining(",")))
                .sorted().collect(Collectors.joining("\t")));
        }
    }

    static List<String> list(String text) {
        return text.isEmpty() ? List.of() : List.of(text.split(","));
    }
}
