use crate::record::{LinePosition, LineRecord, RecordSink};
use crate::{ContainerLogDecoder, ContainerSettings};

#[derive(Default)]
struct Bodies(Vec<String>);

impl RecordSink for Bodies {
    fn has_room(&self) -> bool {
        true
    }

    fn put(&mut self, record: &LineRecord<'_>) {
        self.0.push(String::from_utf8_lossy(record.body).into_owned());
    }
}

/// Reads what a container writes to stdout, and ends the log.
fn read(output: &str) -> Vec<String> {
    let log: String = output.lines().map(|line| format!("1970-01-01T00:00:01Z stdout F {line}\n")).collect();
    read_log(&log)
}

fn read_log(log: &str) -> Vec<String> {
    let settings = ContainerSettings { joins_stack_traces: true, ..ContainerSettings::default() };
    let mut decoder = ContainerLogDecoder::new(settings);
    let mut bodies = Bodies::default();
    let consumed = decoder.push(log.as_bytes(), LinePosition::default(), 1, &mut bodies);
    decoder.flush(&log.as_bytes()[consumed..], LinePosition::default().advanced_by(consumed), 1, &mut bodies);
    assert_eq!(decoder.commit_position().offset, log.len() as u64);
    assert_eq!(decoder.deadline(), None);
    bodies.0
}

const JAVA: &str = "\
Exception in thread \"main\" java.lang.IllegalStateException: no stock
\tat com.example.shop.Stock.take(Stock.java:12)
\tat com.example.shop.Shop$Order.lambda$sell$0(Shop.java:34) ~[shop.jar:1.2]
\tat java.base/java.lang.Thread.run(Thread.java:1583)
\tSuppressed: java.io.IOException: closed
\t\tat com.example.shop.Db.close(Db.java:7)
\t\t... 3 more
Caused by: java.sql.SQLException: timeout
\tat com.example.shop.Db.query(Db.java:56)
\t... 12 common frames omitted
Caused by: java.net.SocketException
\tat java.base/sun.nio.ch.NioSocketImpl.read(Native Method)
\t... 15 more";

const DOTNET: &str = "\
Unhandled exception. System.InvalidOperationException: outer
 ---> System.ArgumentException: inner (Parameter 'x')
   at Shop.Stock.Take(Int32 count) in /src/Stock.cs:line 12
   --- End of inner exception stack trace ---
   at Shop.Program.<Main>$(String[] args) in /src/Program.cs:line 3
--- End of stack trace from previous location ---
   at Shop.Program.Main()";

const NODE: &str = "\
Error: ENOENT: no such file or directory, open '/x'
    at Object.openSync (node:fs:573:18)
    at async Promise.all (index 0)
    at file:///app/index.mjs:10:7
    at async /app/shop.js:3:1
    at new Shop (/app/shop.js:2:2) {
  errno: -2,
  code: 'ENOENT'
}";

const PYTHON: &str = "\
Traceback (most recent call last):
  File \"/app/shop.py\", line 3, in sell
    take(stock)
    ~~~~^^^^^^^
  File \"/app/stock.py\", line 7, in take
    raise ValueError(\"no stock\")
ValueError: no stock

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File \"/app/main.py\", line 1, in <module>
  [Previous line repeated 995 more times]
shop.errors.SellError";

const GO: &str = "\
panic: runtime error: index out of range [5] with length 3 [recovered]
\tpanic: again
[signal SIGSEGV: segmentation violation code=0x1 addr=0x0 pc=0x47]

goroutine 1 [running]:
main.(*Shop).sell(0xc0000b4000, {0x1, 0x2})
\t/app/main.go:10 +0x1d
main.main()
\t/app/main.go:5
created by net/http.(*Server).Serve in goroutine 1
\t/usr/local/go/src/net/http/server.go:3285 +0x4b4

goroutine 18 [chan receive, 2 minutes]:
main.wait(...)
\t/app/wait.go:7";

const RUBY: &str = "\
/app/shop.rb:3:in `sell': no stock (RuntimeError)
\tfrom /app/shop.rb:7:in `block in run'
\tfrom /app/main.rb:1:in '<main>'";

#[test]
fn stack_trace_of_each_language_is_one_record() {
    for trace in [JAVA, DOTNET, NODE, PYTHON, GO, RUBY] {
        assert_eq!(read(trace), [trace]);
        let output = format!("before\n{trace}\nafter\n{trace}\n{trace}");
        assert_eq!(read(&output), ["before", trace, "after", trace, trace]);
    }
}

#[test]
fn log_line_before_a_traceback_may_be_its_head() {
    let trace = "2026-11-18 ERROR shop Traceback (most recent call last):\n  File \"x.py\", line 1\nKeyError: 'a'";
    assert_eq!(read(trace), [trace]);
    let trace = "2026-11-18 ERROR c.e.Shop - failed java.lang.NullPointerException: null\n\tat a.b.C.d(C.java:1)";
    assert_eq!(read(&format!("{trace}\nnext")), [trace, "next"]);
    let trace = "2026/11/18 03:46:54 http: panic serving 10.0.0.1:1: boom\ngoroutine 34 [running]:\nnet/http.(*conn).serve.func1()\n\t/usr/go/server.go:1 +0x1";
    assert_eq!(read(trace), [trace]);
}

#[test]
fn other_text_stays_separate_lines() {
    for output in [
        // JSON in several lines.
        "{\n  \"error\": \"java.lang.Error\",\n  \"at\": [\n    1\n  ]\n}",
        // YAML.
        "Error:\n  at: /app/main.go:10\n  Caused by: nothing\nspec:\n  at home (really): 1",
        // A table.
        "NAME   Error   AGE\nat     1       2d\n  at the end   3",
        // Messages with the words of a trace.
        "Error: first\nError: second\nException\n\nafter",
        "panic: no more\n\nnext\n",
        "Traceback (most recent call last):\nnot indented: at all, is it",
        "Exception handled\n   at the end of the day",
        "SomeError: x\n    ... more to come\n    indented",
        "INFO app.rb:12 loaded\n\tfrom cache",
        // Frames without a head.
        "\tat a.b.C.d(C.java:1)\n\tat a.b.C.e(C.java:2)",
    ] {
        assert_eq!(read(output), output.lines().collect::<Vec<_>>(), "{output}");
    }
}

#[test]
fn interleaved_streams_are_joined_apart() {
    let lines = |stream: &str, text: &str| {
        text.lines().map(|line| format!("1970-01-01T00:00:01Z {stream} F {line}\n")).collect::<Vec<_>>()
    };
    let (java, go) = (lines("stdout", JAVA), lines("stderr", GO));
    let log: String = java.iter().zip(&go).flat_map(|(java, go)| [java.as_str(), go.as_str()]).collect();
    let shorter = java.len().min(go.len());
    let expected = |text: &str| text.lines().take(shorter).collect::<Vec<_>>().join("\n");
    assert_eq!(read_log(&log), [expected(JAVA), expected(GO)]);
}

#[test]
fn held_lines_keep_the_commit_position_and_are_flushed() {
    let settings = ContainerSettings { joins_stack_traces: true, ..ContainerSettings::default() };
    let mut decoder = ContainerLogDecoder::new(settings);
    let mut bodies = Bodies::default();
    let log =
        "1970-01-01T00:00:01Z stdout F first\n1970-01-01T00:00:01Z stdout F panic: x\n1970-01-01T00:00:01Z stdout F \n";
    assert_eq!(decoder.push(log.as_bytes(), LinePosition::default(), 1, &mut bodies), log.len());
    assert_eq!((decoder.commit_position().offset, decoder.deadline()), (36, Some(1_000_000_001)));
    assert_eq!(bodies.0, ["first"]);
    decoder.flush_due(1_000_000_000, &mut bodies);
    assert_eq!(bodies.0, ["first"]);
    decoder.flush_due(1_000_000_001, &mut bodies);
    assert_eq!((decoder.commit_position().offset, decoder.deadline()), (log.len() as u64, None));
    assert_eq!(bodies.0, ["first", "panic: x", ""]);
}

#[test]
fn trace_that_is_too_long_is_split() {
    let settings =
        ContainerSettings { joins_stack_traces: true, max_record_bytes: 100, ..ContainerSettings::default() };
    let mut decoder = ContainerLogDecoder::new(settings);
    let mut bodies = Bodies::default();
    let log: String = JAVA.lines().map(|line| format!("1970-01-01T00:00:01Z stdout F {line}\n")).collect();
    decoder.push(log.as_bytes(), LinePosition::default(), 1, &mut bodies);
    decoder.flush(&[], LinePosition::default(), 1, &mut bodies);
    assert!(bodies.0.len() > 3 && bodies.0.iter().all(|body| body.len() < 250));
    assert_eq!(bodies.0.join("\n"), JAVA);
}
