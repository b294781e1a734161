import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeSet;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.RecordTooLargeException;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** The scenarios that every suite has, with Kafka's own producer and consumer. */
final class Clients implements AutoCloseable {
    final Admin admin = Admin.create(settings(Map.of()));

    static Map<String, Object> settings(Map<String, Object> more) {
        var all = new HashMap<String, Object>(Map.of(
            "bootstrap.servers", Compat.address,
            "client.id", "compat-java",
            "reconnect.backoff.max.ms", "200"));
        all.putAll(more);
        return all;
    }

    @Override
    public void close() {
        admin.close(Duration.ofSeconds(5));
    }

    void perform() {
        for (var compression : List.of("none", "gzip", "snappy", "lz4", "zstd")) {
            Compat.scenario("records of every shape, " + compression, () -> everyShape(compression));
        }
        Compat.scenario("records of 1 MB", this::large);
        Compat.scenario("a topic made by its first record", this::automatic);
        Compat.scenario("group of two, rebalance, commit, restart, reading on, range",
            () -> group("org.apache.kafka.clients.consumer.RangeAssignor", true));
        Compat.scenario("group of two, rebalance, commit, restart, reading on, cooperative-sticky",
            () -> group("org.apache.kafka.clients.consumer.CooperativeStickyAssignor", false));
        Compat.scenario("idempotent producer over a restart", this::idempotent);
    }

    String topic(String name, int partitions) throws Exception {
        var full = "java-" + name + "-" + Compat.UNIQUE;
        admin.createTopics(List.of(new NewTopic(full, partitions, (short) 1))).all().get();
        return full;
    }

    static KafkaProducer<byte[], byte[]> producer(Map<String, Object> more) {
        return new KafkaProducer<>(settings(more), new ByteArraySerializer(), new ByteArraySerializer());
    }

    static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    private static List<ProducerRecord<byte[], byte[]>> recordsOfEveryShape(String topic) {
        var any = new byte[256];
        for (var i = 0; i < any.length; i++) any[i] = (byte) i;
        var values = Arrays.asList(bytes("a value"), new byte[0], null, any, bytes("ñandú — 記録"), bytes("x".repeat(5000)));
        var records = new ArrayList<ProducerRecord<byte[], byte[]>>();
        for (var i = 0; i < 60; i++) {
            var key = i % 4 == 3 ? null : i % 4 == 2 ? new byte[0] : bytes("key-" + i);
            List<Header> headers = i % 3 == 0 ? List.of() : List.of(
                new RecordHeader("trace", bytes("t-" + i)), new RecordHeader("bytes", any),
                new RecordHeader("empty", new byte[0]), new RecordHeader("null", (byte[]) null),
                new RecordHeader("trace", bytes("again")));
            records.add(new ProducerRecord<>(topic, 0, 1_700_000_000_000L + i, key, values.get(i % values.size()), headers));
        }
        return records;
    }

    private static String show(byte[] key, byte[] value, long timestamp, Iterable<Header> headers) {
        var text = new StringBuilder(Arrays.toString(key) + Arrays.toString(value) + timestamp);
        for (var header : headers) text.append(' ').append(header.key()).append(Arrays.toString(header.value()));
        return text.toString();
    }

    /** Reads partition 0 from its start until `count` records have come. */
    static List<ConsumerRecord<byte[], byte[]>> read(String topic, int count) throws Exception {
        var settings = settings(Map.of("fetch.max.wait.ms", 100, "enable.auto.commit", false, "auto.offset.reset", "earliest"));
        var records = new ArrayList<ConsumerRecord<byte[], byte[]>>();
        try (var consumer = new KafkaConsumer<>(settings, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
            consumer.assign(List.of(new TopicPartition(topic, 0)));
            Compat.until(count + " records of " + topic, () -> records.size() >= count, () -> {
                consumer.poll(Duration.ofMillis(500)).forEach(records::add);
                return null;
            });
        }
        return records;
    }

    private void everyShape(String compression) throws Exception {
        var name = topic(compression, 1);
        var records = recordsOfEveryShape(name);
        try (var producer = producer(Map.of("compression.type", compression, "linger.ms", 50))) {
            var sent = new ArrayList<Future<RecordMetadata>>();
            for (var record : records) sent.add(producer.send(record));
            for (var i = 0; i < sent.size(); i++) Compat.same(sent.get(i).get().offset(), (long) i, "offset");
        }
        var came = read(name, records.size());
        for (var i = 0; i < records.size(); i++) {
            var one = came.get(i);
            var other = records.get(i);
            Compat.same(one.offset(), (long) i, "offset read");
            Compat.same(show(one.key(), one.value(), one.timestamp(), one.headers()),
                show(other.key(), other.value(), other.timestamp(), other.headers()), "record " + i);
        }
    }

    private void large() throws Exception {
        var name = topic("large", 1);
        var random = new Random(1);
        var values = new ArrayList<byte[]>();
        try (var producer = producer(Map.of("max.request.size", 2_000_000))) {
            for (var i = 0; i < 3; i++) {
                var value = new byte[1_000_000];
                random.nextBytes(value);
                values.add(value);
                producer.send(new ProducerRecord<>(name, value)).get();
            }
            try {
                producer.send(new ProducerRecord<>(name, new byte[1_100_000])).get();
                throw new AssertionError("a record above max.message.bytes was taken");
            } catch (ExecutionException error) {
                Compat.holds(error.getCause() instanceof RecordTooLargeException, "too large ended with " + error.getCause());
            }
        }
        var came = read(name, 3);
        for (var i = 0; i < 3; i++) Compat.holds(Arrays.equals(came.get(i).value(), values.get(i)), "record " + i + " came back changed");
    }

    private void automatic() throws Exception {
        var name = "java-auto-" + Compat.UNIQUE;
        try (var producer = producer(Map.of())) {
            producer.send(new ProducerRecord<>(name, bytes("first"))).get();
        }
        Compat.same(admin.describeTopics(List.of(name)).allTopicNames().get().size(), 1, "topics described");
    }

    /** A member of a group that remembers what it was given; polled from the scenario's own thread. */
    private static final class Member implements AutoCloseable {
        final List<Integer> values = new ArrayList<>();
        final KafkaConsumer<byte[], byte[]> consumer;

        Member(String group, String topic, String assignor) {
            consumer = new KafkaConsumer<>(settings(Map.of(
                "group.id", group, "group.protocol", "classic", "partition.assignment.strategy", assignor,
                "auto.offset.reset", "earliest", "enable.auto.commit", false, "session.timeout.ms", 10_000,
                "heartbeat.interval.ms", 300, "fetch.max.wait.ms", 100)), new ByteArrayDeserializer(), new ByteArrayDeserializer());
            consumer.subscribe(List.of(topic));
        }

        int owned() {
            return consumer.assignment().size();
        }

        void poll() {
            for (var record : consumer.poll(Duration.ofMillis(50))) values.add(Integer.parseInt(new String(record.value())));
        }

        @Override
        public void close() {
            consumer.close();
        }
    }

    private void group(String assignor, boolean restart) throws Exception {
        var short_ = assignor.substring(assignor.lastIndexOf('.') + 1).toLowerCase();
        var name = topic("group-" + short_, 4);
        var group = "java-group-" + short_ + "-" + Compat.UNIQUE;
        var members = new ArrayList<Member>();
        var seen = new TreeSet<Integer>();
        var sent = new int[1];
        try (var producer = producer(Map.of("linger.ms", 5))) {
            Compat.Scenario poll = () -> {
                for (var member : members) {
                    member.poll();
                    seen.addAll(member.values);
                }
            };
            java.util.function.IntConsumer more = count -> {
                for (var i = 0; i < count; i++, sent[0]++) {
                    producer.send(new ProducerRecord<>(name, sent[0] % 4, null, bytes(Integer.toString(sent[0]))));
                }
                producer.flush();
            };
            var first = new Member(group, name, assignor);
            members.add(first);
            more.accept(400);
            Compat.until("the first member owns all", () -> first.owned() == 4 && seen.size() == 400, callable(poll));
            var second = new Member(group, name, assignor);
            members.add(second);
            Compat.until("two members share", () -> first.owned() == 2 && second.owned() == 2, callable(poll));
            var described = admin.describeClassicGroups(List.of(group)).all().get().get(group);
            Compat.same(described.state().toString() + described.members().size(), "Stable2", "the group");
            more.accept(400);
            Compat.until("two members read all", () -> seen.size() == 800, callable(poll));
            Compat.holds(!second.values.isEmpty(), "the second member was given records");
            for (var member : members) member.consumer.commitSync();
            members.remove(second);
            second.close();
            Compat.until("the first member owns all again", () -> first.owned() == 4, callable(poll));
            if (restart) Compat.restartServer();
            more.accept(200);
            Compat.until("the first member reads on", () -> seen.size() == 1000, callable(poll));
            first.consumer.commitSync();
            first.close();
            var committed = admin.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata().get();
            Compat.same(committed.values().stream().mapToLong(held -> held.offset()).sum(), 1000L, "committed");

            var third = new Member(group, name, assignor);
            members.clear();
            members.add(third);
            Compat.until("the third member owns all", () -> third.owned() == 4, callable(poll));
            more.accept(50);
            Compat.until("the third member reads on", () -> third.values.size() >= 50, callable(poll));
            third.consumer.commitSync();
            third.close();
            Compat.same(new TreeSet<>(third.values).first() + "+" + third.values.size(), "1000+50", "read by the third member");
        }
    }

    private static java.util.concurrent.Callable<?> callable(Compat.Scenario scenario) {
        return () -> {
            scenario.perform();
            return null;
        };
    }

    private void idempotent() throws Exception {
        var name = topic("idempotent", 1);
        var failure = new AtomicReference<Exception>();
        var sent = 0;
        try (var producer = producer(Map.of("linger.ms", 2, "batch.size", 500, "acks", "all", "retry.backoff.ms", 50))) {
            // Five requests are always under way: some are cut off in the middle by the restart.
            for (var end = System.nanoTime() + 500_000_000L; System.nanoTime() < end; ) sent = send(producer, name, sent, failure);
            var restarted = new AtomicReference<Throwable>();
            var restart = new Thread(() -> {
                try {
                    Compat.restartServer();
                } catch (Throwable error) {
                    restarted.set(error);
                }
            });
            restart.start();
            while (restart.isAlive()) {
                if (sent < 20_000) sent = send(producer, name, sent, failure);
                else restart.join(10);
            }
            if (restarted.get() != null) throw new AssertionError(restarted.get());
            for (var i = 0; i < 1000; i++) sent = send(producer, name, sent, failure);
            producer.flush();
        }
        if (failure.get() != null) throw failure.get();
        var came = read(name, sent);
        for (var i = 0; i < sent; i++) Compat.same(new String(came.get(i).value()), Integer.toString(i), "offset " + i);
    }

    private static int send(KafkaProducer<byte[], byte[]> producer, String name, int sent, AtomicReference<Exception> failure) throws Exception {
        producer.send(new ProducerRecord<>(name, bytes(Integer.toString(sent))), (metadata, error) -> {
            if (error != null) failure.compareAndSet(null, error);
        });
        if (sent % 10 == 0) Thread.sleep(1);
        return sent + 1;
    }
}
