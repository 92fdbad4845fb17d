use futures_util::StreamExt;
use kubewake_apiserver::kubelet_client::{LogOptions, LogSince};
use tokio::io::AsyncWriteExt;

use super::*;

const AT: &str = "2026-01-02T03:04:05.000000006Z";

fn now() -> Timestamp {
    AT.parse().unwrap()
}

fn entries(pushes: &[&str]) -> Vec<String> {
    let mut splitter = LineSplitter::new(OutputStream::Stdout);
    let mut out = Vec::new();
    pushes.iter().for_each(|push| splitter.push(push.as_bytes(), now(), &mut out));
    splitter.finish(now(), &mut out);
    String::from_utf8(out).unwrap().lines().map(str::to_owned).collect()
}

#[test]
fn lines_are_written_as_container_runtimes_do() {
    let full = |text: &str| format!("{AT} stdout F {text}");
    assert_eq!(entries(&["one\ntwo\n"]), [full("one"), full("two")]);
    assert_eq!(entries(&["o", "n", "e\n\nthree"]), [full("one"), full(""), full("three")]);
    assert_eq!(entries(&["\n"]), [full("")]);
    let none: [String; 0] = [];
    assert_eq!(entries(&[]), none);
}

#[test]
fn long_lines_are_cut_and_can_be_put_together_again() {
    let long = "x".repeat(40_000);
    for pushes in
        [vec![format!("{long}\nshort\n")], long.as_bytes().chunks(999).map(chunk).chain(["\nshort\n".into()]).collect()]
    {
        let pushes: Vec<&str> = pushes.iter().map(String::as_str).collect();
        let entries = entries(&pushes);
        let parsed: Vec<LogEntry<'_>> = entries.iter().map(|line| LogEntry::parse(line.as_bytes()).unwrap()).collect();
        assert_eq!(parsed.iter().map(|entry| entry.full).collect::<Vec<_>>(), [false, false, true, true]);
        assert_eq!(parsed.iter().map(|entry| entry.text.len()).collect::<Vec<_>>(), [16384, 16384, 7232, 5]);
    }
    let exact = format!("{}\n", "y".repeat(16384));
    assert_eq!(entries(&[&exact]).len(), 2);
}

fn chunk(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// A container with controlled output.
struct Fixture {
    dir: tempfile::TempDir,
    logs: ContainerLogStore,
}

impl Fixture {
    fn new(limit: u64) -> Self {
        let dir = tempfile::tempdir().unwrap();
        Self { logs: ContainerLogStore::new(dir.path().to_owned(), limit), dir }
    }

    fn begin(&self, number: i32) -> RunOutput {
        self.logs.begin(&ContainerLogKey { uid: "1", container: "main", number }).unwrap()
    }

    fn request(options: &LogOptions) -> LogRequest {
        LogRequest {
            node: "node-0".into(),
            namespace: "default".into(),
            pod: "web".into(),
            uid: "1".into(),
            container: "main".into(),
            options: options.clone(),
        }
    }

    async fn read(&self, options: &LogOptions) -> String {
        let pieces: Vec<Bytes> = self.logs.open(&Self::request(options)).unwrap().collect().await;
        String::from_utf8(pieces.concat()).unwrap()
    }
}

fn say(output: &RunOutput, at: &str, lines: &[&str]) {
    let mut splitter = LineSplitter::new(OutputStream::Stderr);
    let mut out = Vec::new();
    for line in lines {
        splitter.push(format!("{line}\n").as_bytes(), at.parse().unwrap(), &mut out);
        output.append(&mut out);
    }
}

#[tokio::test]
async fn what_is_asked_for_is_read() {
    let fixture = Fixture::new(LIMIT);
    let run = fixture.begin(0);
    say(&run, "2026-01-01T00:00:00Z", &["one", "two"]);
    say(&run, AT, &["three", "four"]);
    let all = LogOptions::default();
    assert_eq!(fixture.read(&all).await, "one\ntwo\nthree\nfour\n");
    assert_eq!(fixture.read(&LogOptions { tail_lines: Some(1), ..all.clone() }).await, "four\n");
    assert_eq!(fixture.read(&LogOptions { tail_lines: Some(0), ..all.clone() }).await, "");
    assert_eq!(fixture.read(&LogOptions { tail_lines: Some(99), ..all.clone() }).await, "one\ntwo\nthree\nfour\n");
    assert_eq!(fixture.read(&LogOptions { limit_bytes: Some(6), ..all.clone() }).await, "one\ntw");
    let since = Some(LogSince::Time("2026-01-02T00:00:00Z".parse().unwrap()));
    assert_eq!(fixture.read(&LogOptions { since, ..all.clone() }).await, "three\nfour\n");
    assert_eq!(fixture.read(&LogOptions { since: Some(LogSince::Seconds(1)), ..all.clone() }).await, "");
    assert_eq!(
        fixture.read(&LogOptions { since: Some(LogSince::Seconds(u64::MAX)), ..all.clone() }).await.lines().count(),
        4
    );
    let timed = LogOptions { timestamps: true, tail_lines: Some(1), ..all };
    assert_eq!(fixture.read(&timed).await, format!("{AT} four\n"));
}

/// Large enough for the output of these tests.
const LIMIT: u64 = 1 << 20;

#[tokio::test]
async fn the_run_before_can_be_read_and_those_before_it_are_gone() {
    let fixture = Fixture::new(LIMIT);
    let last = LogOptions::default();
    let previous = LogOptions { previous: true, ..LogOptions::default() };
    let missing = |options: &LogOptions| fixture.logs.open(&Fixture::request(options)).err().unwrap().to_string();
    assert_eq!(missing(&last), "container \"main\" in pod \"web\" is waiting to start: ContainerCreating");
    say(&fixture.begin(0), AT, &["first"]);
    assert_eq!(missing(&previous), "previous terminated container \"main\" in pod \"web\" not found");
    say(&fixture.begin(1), AT, &["second"]);
    say(&fixture.begin(2), AT, &["third"]);
    assert_eq!(fixture.read(&last).await, "third\n");
    assert_eq!(fixture.read(&previous).await, "second\n");
    assert_eq!(std::fs::read_dir(fixture.dir.path().join("1/main")).unwrap().count(), 2);
}

#[tokio::test]
async fn two_files_hold_the_end_of_what_was_said() {
    let fixture = Fixture::new(4096);
    let run = fixture.begin(0);
    let lines: Vec<String> = (0..1000).map(|number| format!("line {number}")).collect();
    say(&run, AT, &lines.iter().map(String::as_str).collect::<Vec<_>>());
    let sizes = std::fs::read_dir(fixture.dir.path().join("1/main"))
        .unwrap()
        .map(|entry| entry.unwrap().metadata().unwrap().len());
    let sizes: Vec<u64> = sizes.collect();
    assert!(sizes.len() == 2 && sizes.iter().all(|size| *size <= 4096), "{sizes:?}");
    let read = fixture.read(&LogOptions::default()).await;
    assert!(read.ends_with("line 999\n"));
    let kept = read.lines().count();
    assert!(kept > 50, "{kept}");
    assert_eq!(read, lines[1000 - kept..].iter().map(|line| format!("{line}\n")).collect::<String>());
    // Across both files.
    let tail = fixture.read(&LogOptions { tail_lines: Some(kept as u64 - 1), ..LogOptions::default() }).await;
    assert_eq!(tail.lines().next(), Some(lines[1000 - kept + 1].as_str()));
    assert_eq!(run.tail(3, 2048), "line 997\nline 998\nline 999\n");
    assert_eq!(run.tail(80, 9), "line 999\n");
}

#[tokio::test]
async fn who_follows_hears_everything_to_the_end() {
    let fixture = Fixture::new(8192);
    let run = fixture.begin(0);
    let follow = LogOptions { follow: true, tail_lines: Some(1), ..LogOptions::default() };
    say(&run, AT, &["before", "now"]);
    let mut heard = std::pin::pin!(fixture.logs.open(&Fixture::request(&follow)).unwrap());
    let mut text = Vec::new();
    // The file is rotated many times under the reader.
    for number in 0..2000 {
        say(&run, AT, &[&format!("line {number}")]);
        text.extend_from_slice(&heard.next().await.unwrap());
    }
    run.finish();
    assert!(heard.next().await.is_none());
    let wanted: String = (0..2000).map(|number| format!("line {number}\n")).collect();
    assert_eq!(String::from_utf8(text).unwrap(), format!("now\n{wanted}"));
}

#[tokio::test]
async fn both_streams_of_a_process_are_kept_until_they_end() {
    use tokio::net::unix::pipe;
    let fixture = Fixture::new(LIMIT);
    let run = fixture.begin(0);
    let (mut out, stdout) = pipe::pipe().unwrap();
    let (mut err, stderr) = pipe::pipe().unwrap();
    let keeping = tokio::spawn(run.clone().store_output(ProcessOutput { stdout, stderr }));
    out.write_all(b"hello\nwor").await.unwrap();
    err.write_all(b"\xff oh\n").await.unwrap();
    out.write_all(b"ld").await.unwrap();
    drop((out, err));
    keeping.await.unwrap();
    let pieces: Vec<Bytes> = fixture
        .logs
        .open(&Fixture::request(&LogOptions { follow: true, ..LogOptions::default() }))
        .unwrap()
        .collect()
        .await;
    let all = pieces.concat();
    let mut lines: Vec<&[u8]> = all.split(|byte| *byte == b'\n').collect();
    lines.sort_unstable();
    // Invalid UTF-8 is kept unchanged.
    assert_eq!(lines, [b"".as_slice(), b"hello", b"world", b"\xff oh"]);
}

#[tokio::test]
async fn a_node_that_starts_again_finds_what_was_said() {
    let mut fixture = Fixture::new(LIMIT);
    for (number, words) in [(0, "first"), (1, "second"), (2, "third")] {
        let run = fixture.begin(number);
        say(&run, AT, &[words]);
        run.finish();
    }
    let previous = LogOptions { previous: true, ..LogOptions::default() };
    fixture.logs = ContainerLogStore::new(fixture.dir.path().to_owned(), LIMIT);
    assert_eq!(fixture.read(&LogOptions::default()).await, "third\n");
    assert_eq!(fixture.read(&previous).await, "second\n");
    // A following reader ends.
    assert_eq!(fixture.read(&LogOptions { follow: true, ..LogOptions::default() }).await, "third\n");
    // Also if the restart count could not be recorded.
    let run = fixture.begin(1);
    say(&run, AT, &["fourth"]);
    assert_eq!(fixture.read(&LogOptions::default()).await, "fourth\n");
    assert_eq!(fixture.read(&previous).await, "third\n");
}

#[tokio::test]
async fn a_long_log_is_found_again_whole() {
    let mut fixture = Fixture::new(4096);
    let run = fixture.begin(0);
    (0..100).for_each(|number| say(&run, AT, &[&format!("line {number}")]));
    run.finish();
    let before = fixture.read(&LogOptions::default()).await;
    fixture.logs = ContainerLogStore::new(fixture.dir.path().to_owned(), 4096);
    assert_eq!(fixture.read(&LogOptions::default()).await, before);
    let tail = LogOptions { tail_lines: Some(90), ..LogOptions::default() };
    assert_eq!(fixture.read(&tail).await.lines().count(), 90);
}

#[test]
fn the_logs_of_pods_that_went_meanwhile_are_removed_and_nothing_else() {
    let fixture = Fixture::new(LIMIT);
    let (gone, there) = ("0d5a3c1e-1111-4222-8333-444455556666", "0d5a3c1e-1111-4222-8333-444455557777");
    for name in [gone, there, "of somebody else"] {
        std::fs::create_dir_all(fixture.dir.path().join(name)).unwrap();
    }
    fixture.logs.remove_others(|| HashSet::from([there.to_owned()]));
    let exists = |name| fixture.dir.path().join(name).exists();
    assert!(!exists(gone) && exists(there) && exists("of somebody else"));
}
