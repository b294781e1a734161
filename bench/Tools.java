import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Properties;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.kafka.common.utils.Exit;
import org.apache.kafka.server.util.ThroughputThrottler;

/**
 * Runs Kafka's own command line tools one after another in one JVM: what is measured is a server, so the client
 * should be warm, and as warm for one server as for the other.
 *
 * A line of standard input is a class and its arguments, separated by tabs. The answer is what the tool printed, each
 * line behind "| ", then "exit N".
 */
public class Tools {
    static final class Exited extends RuntimeException {
        final int status;

        Exited(int status) {
            super("exit " + status, null, false, false);
            this.status = status;
        }
    }

    public static void main(String[] args) throws Exception {
        Exit.setExitProcedure((status, message) -> {
            throw new Exited(status);
        });
        PrintStream answers = System.out;
        BufferedReader commands = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line; (line = commands.readLine()) != null; ) {
            ByteArrayOutputStream printed = new ByteArrayOutputStream();
            System.setOut(new PrintStream(printed, true, StandardCharsets.UTF_8));
            int status = run(line.split("\t"));
            System.out.flush();
            System.setOut(answers);
            printed.toString(StandardCharsets.UTF_8).lines().forEach(text -> answers.println("| " + text));
            answers.println("exit " + status);
            answers.flush();
        }
    }

    static int run(String[] command) {
        String[] arguments = Arrays.copyOfRange(command, 1, command.length);
        try {
            Class.forName(command[0]).getMethod("main", String[].class).invoke(null, (Object) arguments);
            return 0;
        } catch (ReflectiveOperationException problem) {
            Throwable cause = problem.getCause() == null ? problem : problem.getCause();
            if (cause instanceof Exited exited) return exited.status;
            System.out.println(cause);
            return 1;
        }
    }
}

/**
 * What Kafka's ProducerPerformance does at a steady rate, in microseconds instead of whole milliseconds, and second by
 * second: a stall in the first second looks the same as one in each of them otherwise.
 */
class SteadyLatency {
    /** Bootstrap servers, topic, seconds, records per second, bytes of a record. */
    public static void main(String[] args) throws Exception {
        int seconds = Integer.parseInt(args[2]);
        int rate = Integer.parseInt(args[3]);
        int count = seconds * rate;
        byte[] payload = new byte[Integer.parseInt(args[4])];
        long[] latencies = new long[count];
        Properties properties = new Properties();
        properties.put("bootstrap.servers", args[0]);
        properties.put("acks", "all");
        properties.put("linger.ms", "0");
        properties.put("key.serializer", ByteArraySerializer.class.getName());
        properties.put("value.serializer", ByteArraySerializer.class.getName());
        try (KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(properties)) {
            producer.partitionsFor(args[1]);
            ThroughputThrottler throttler = new ThroughputThrottler(rate, System.currentTimeMillis());
            for (int i = 0; i < count; i++) {
                int record = i;
                long nowMs = System.currentTimeMillis();
                long began = System.nanoTime();
                producer.send(new ProducerRecord<>(args[1], payload), (metadata, error) -> {
                    latencies[record] = error == null ? System.nanoTime() - began : Long.MAX_VALUE;
                });
                if (throttler.shouldThrottle(i, nowMs)) throttler.throttle();
            }
        }
        StringBuilder perSecond = new StringBuilder("p99 per second, us:");
        for (int second = 0; second < seconds; second++)
            perSecond.append(' ').append(percentile(Arrays.copyOfRange(latencies, second * rate, (second + 1) * rate), 99));
        System.out.println(perSecond);
        System.out.println("p50 us: " + percentile(latencies, 50));
        System.out.println("p99 us: " + percentile(latencies, 99));
    }

    static long percentile(long[] nanoseconds, int percent) {
        long[] sorted = nanoseconds.clone();
        Arrays.sort(sorted);
        return sorted[(int) ((long) sorted.length * percent / 100)] / 1000;
    }
}
