import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import org.apache.kafka.common.utils.Exit;

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
