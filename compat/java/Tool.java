import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.nio.charset.StandardCharsets;

/** One run of one of Kafka's command line tools, and what it printed. */
record Tool(String name, int code, String output) {
    /** Thrown where a tool would have ended the JVM. */
    static final class Ended extends Error {
        final int code;

        Ended(int code) {
            super("ended with " + code, null, false, false);
            this.code = code;
            if (first == null) first = code;
        }
    }

    /** The code of the first exit: what a tool does once it was told to end would not happen in a JVM of its own. */
    private static volatile Integer first;

    /** What the tool would do at the end of its JVM: close its producer, say what it did. */
    static final java.util.Queue<Runnable> HOOKS = new java.util.concurrent.ConcurrentLinkedQueue<>();

    static Tool run(String className, String... args) throws Exception {
        return runWith("", className, args);
    }

    /** @param input what the tool reads from its standard input. */
    static Tool runWith(String input, String className, String... args) throws Exception {
        var printed = new ByteArrayOutputStream();
        var stream = new PrintStream(printed, true, StandardCharsets.UTF_8);
        var out = System.out;
        var err = System.err;
        var in = System.in;
        first = null;
        System.setOut(stream);
        System.setErr(stream);
        System.setIn(new ByteArrayInputStream(input.getBytes(StandardCharsets.UTF_8)));
        try {
            try {
                Class.forName(className).getMethod("main", String[].class).invoke(null, (Object) args);
            } catch (InvocationTargetException error) {
                if (!(error.getCause() instanceof Ended)) {
                    error.getCause().printStackTrace(stream);
                    if (first == null) first = 1;
                }
            }
            for (var hook = HOOKS.poll(); hook != null; hook = HOOKS.poll()) hook.run();
        } finally {
            HOOKS.clear();
            System.setOut(out);
            System.setErr(err);
            System.setIn(in);
        }
        var name = className.substring(className.lastIndexOf('.') + 1);
        return new Tool(name, first == null ? 0 : first, printed.toString(StandardCharsets.UTF_8));
    }

    /** For a tool that says what it did in a shutdown hook of the JVM. */
    static Tool inOwnJvm(String className, String... args) throws Exception {
        var command = new java.util.ArrayList<>(java.util.List.of(ProcessHandle.current().info().command().orElse("java"),
            "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx256m",
            "-Dlog4j2.configurationFile=" + System.getProperty("log4j2.configurationFile"),
            "-cp", System.getProperty("java.class.path"), className));
        command.addAll(java.util.List.of(args));
        var process = new ProcessBuilder(command).redirectErrorStream(true).start();
        process.getOutputStream().close();
        var printed = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        return new Tool(className.substring(className.lastIndexOf('.') + 1), process.waitFor(), printed);
    }

    Tool succeeds() {
        if (code != 0) throw new AssertionError(name + " ended with " + code + ": " + brief());
        return this;
    }

    Tool fails() {
        if (code == 0) throw new AssertionError(name + " ended with 0 and should not have: " + brief());
        return this;
    }

    /** @param patterns regular expressions, each of which must be found in a line of the output. */
    Tool says(String... patterns) {
        for (var pattern : patterns) {
            if (!java.util.regex.Pattern.compile(pattern, java.util.regex.Pattern.MULTILINE).matcher(output).find()) {
                throw new AssertionError(name + " does not say /" + pattern + "/ but: " + brief());
            }
        }
        return this;
    }

    private String brief() {
        var text = output.strip();
        return text.length() > 1200 ? text.substring(0, 1200) + "…" : text;
    }
}
