import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.util.concurrent.Callable;
import java.util.function.BooleanSupplier;
import org.apache.kafka.common.utils.Exit;

/** Kafka's own clients and tools against a server, in one JVM; ../scenario.ts says how a suite is run and what it prints. */
public final class Compat {
    /** The real standard output: tools print into buffers. */
    static final PrintStream OUT = System.out;
    static final BufferedReader IN = new BufferedReader(new InputStreamReader(System.in));
    static final String UNIQUE = Long.toString(ProcessHandle.current().pid(), 36) + Long.toString(System.currentTimeMillis(), 36);
    static String address;
    static boolean failed;

    interface Scenario {
        void perform() throws Exception;
    }

    static void scenario(String name, Scenario scenario) {
        try {
            scenario.perform();
            OUT.println("ok " + name);
        } catch (Throwable error) {
            failed = true;
            var text = new StringBuilder();
            for (var cause = error; cause != null; cause = cause.getCause()) text.append(text.isEmpty() ? "" : " ⏎ by ").append(cause);
            OUT.println("failed " + name + ": " + text.toString().replaceAll("\\s*\n\\s*", " ⏎ "));
            if (System.getenv("COMPAT_STACK") != null) error.printStackTrace();
        }
    }

    static void restartServer() throws Exception {
        OUT.println("restart");
        if (IN.readLine() == null) throw new IllegalStateException("nobody answers the request for a restart");
    }

    static void until(String what, BooleanSupplier holds, Callable<?> meanwhile) throws Exception {
        var end = System.nanoTime() + 30_000_000_000L;
        while (!holds.getAsBoolean()) {
            if (System.nanoTime() > end) throw new AssertionError(what + ", not after 30 s");
            meanwhile.call();
        }
    }

    static void same(Object actual, Object expected, String what) {
        if (!java.util.Objects.deepEquals(actual, expected)) {
            var text = what + " is " + actual + " and not " + expected;
            throw new AssertionError(text.length() > 1200 ? text.substring(0, 1200) : text);
        }
    }

    static void holds(boolean condition, String what) {
        if (!condition) throw new AssertionError(what);
    }

    public static void main(String[] args) throws Exception {
        address = args[0];
        // Tools end by ending the JVM, which here they must not.
        Exit.setExitProcedure((code, message) -> {
            throw new Tool.Ended(code);
        });
        Exit.setHaltProcedure((code, message) -> {
            throw new Tool.Ended(code);
        });
        Exit.setShutdownHookAdder((name, hook) -> Tool.HOOKS.add(hook));
        try (var clients = new Clients()) {
            // A second argument asks for the tools for clusters alone.
            if (args.length == 1) {
                clients.perform();
                new Tools(clients.admin).perform();
            }
            new ClusterTools(clients.admin).perform();
        }
        OUT.flush();
        Runtime.getRuntime().halt(failed ? 1 : 0);
    }
}
