//! Rotation as in a kubelet, on a clock of the test, and reading across it.

use super::*;

const SMALL: LogRotation = LogRotation { max_bytes: 4096, max_files: 4, interval: Duration::from_secs(10) };

/// The time of the check with this number.
fn check(number: u64) -> String {
    format!("2026-01-02T03:{:02}:{:02}Z", number / 6, number % 6 * 10)
}

/// Writes numbered lines, enough for one file each time, with a check after each file.
fn write_files(fixture: &Fixture, run: &RunOutput, files: std::ops::Range<u64>) -> Vec<String> {
    let mut all = Vec::new();
    for file in files {
        let lines: Vec<String> = (0..100).map(|line| format!("file {file} line {line}")).collect();
        say(run, &check(file), &lines.iter().map(String::as_str).collect::<Vec<_>>());
        fixture.rotate_at(&check(file));
        all.extend(lines);
    }
    all
}

fn joined(lines: &[String]) -> String {
    lines.iter().map(|line| format!("{line}\n")).collect()
}

#[test]
fn log_is_rotated_at_its_size_and_older_files_are_compressed_and_removed() {
    let fixture = Fixture::with_rules(SMALL);
    let run = fixture.begin(0);
    say(&run, AT, &["not enough"]);
    fixture.rotate_at(&check(0));
    assert_eq!(fixture.files(), ["0.log"]);
    write_files(&fixture, &run, 1..2);
    assert_eq!(fixture.files(), ["0.log", "0.log.20260102-030010"]);
    write_files(&fixture, &run, 2..3);
    assert_eq!(fixture.files(), ["0.log", "0.log.20260102-030010.gz", "0.log.20260102-030020"]);
    write_files(&fixture, &run, 3..6);
    let files = ["0.log", "0.log.20260102-030030.gz", "0.log.20260102-030040.gz", "0.log.20260102-030050"];
    assert_eq!(fixture.files(), files);
    for file in files {
        let mode = fs::metadata(fixture.container_dir().join(file)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o640, "{file}");
    }
    // Nothing more was written, and an ended run is not rotated.
    fixture.rotate_at(&check(7));
    assert_eq!(fixture.files(), files);
    say(&run, AT, &["x".repeat(9000).as_str()]);
    run.finish();
    fixture.rotate_at(&check(8));
    assert_eq!(fixture.files(), files);
    fixture.begin(1);
    fixture.begin(2);
    assert_eq!(fixture.files(), ["1.log", "2.log"], "all files of a run are removed with it");
}

#[test]
fn second_rotation_within_a_second_waits() {
    let fixture = Fixture::with_rules(SMALL);
    let run = fixture.begin(0);
    let first = write_files(&fixture, &run, 1..2);
    say(&run, AT, &["y".repeat(5000).as_str()]);
    fixture.rotate_at(&check(1));
    assert_eq!(fixture.files(), ["0.log", "0.log.20260102-030010.gz"], "the name is in use");
    fixture.rotate_at(&check(2));
    assert_eq!(fixture.files(), ["0.log", "0.log.20260102-030010.gz", "0.log.20260102-030020"]);
    assert!(run.tail(u64::MAX, usize::MAX).starts_with(&joined(&first)));
}

#[tokio::test]
async fn reader_gets_all_stored_files_in_order() {
    let fixture = Fixture::with_rules(SMALL);
    let run = fixture.begin(0);
    let mut lines = write_files(&fixture, &run, 1..8);
    say(&run, AT, &["the end"]);
    lines.push("the end".to_owned());
    // Three rotated files of a hundred lines are stored.
    let stored = &lines[400..];
    assert_eq!(fixture.read(0, &all()).await, joined(stored));
    for wanted in [0, 1, 2, 101, 102, 150, 201, 250, 300, 301, 999] {
        let from = stored.len().saturating_sub(wanted);
        assert_eq!(fixture.read(0, &tail(wanted as u64)).await, joined(&stored[from..]), "tail {wanted}");
    }
    let since = LogOptions { since: Some(LogSince::Time(time(&check(6)))), ..all() };
    assert_eq!(fixture.read(0, &since).await, joined(&lines[500..]), "times are compared, not files");
    let limited = LogOptions { limit_bytes: Some(20), ..tail(201) };
    assert_eq!(fixture.read(0, &limited).await, joined(&stored[100..])[..20]);
    run.finish();
    // A node that starts again finds the same files.
    let fixture = fixture.restarted();
    assert_eq!(fixture.read(0, &all()).await, joined(stored));
    assert_eq!(fixture.read(0, &tail(250)).await, joined(&stored[51..]));
}

#[tokio::test]
async fn follower_hears_every_line_across_rotations() {
    let fixture = Fixture::with_rules(SMALL);
    let run = fixture.begin(0);
    say(&run, AT, &["before", "now"]);
    let follow = LogOptions { follow: true, ..tail(1) };
    let heard = fixture.logs.open(&request(&follow), Some(&running(0))).await.unwrap();
    let mut heard = std::pin::pin!(heard);
    assert_eq!(heard.next().await.unwrap(), "now\n");
    let mut text = Vec::new();
    let mut written = String::new();
    for file in 1..20 {
        written += &joined(&write_files(&fixture, &run, file..file + 1));
        while text.len() < written.len() {
            text.extend_from_slice(&heard.next().await.unwrap());
        }
    }
    say(&run, AT, &["the end"]);
    run.finish();
    while let Some(piece) = heard.next().await {
        text.extend_from_slice(&piece);
    }
    assert_eq!(String::from_utf8(text).unwrap(), written + "the end\n");
}

#[tokio::test]
async fn slow_follower_continues_with_what_is_still_stored() {
    let fixture = Fixture::with_rules(SMALL);
    let run = fixture.begin(0);
    say(&run, AT, &["first"]);
    let follow = LogOptions { follow: true, ..all() };
    let heard = fixture.logs.open(&request(&follow), Some(&running(0))).await.unwrap();
    let lines = write_files(&fixture, &run, 1..9);
    run.finish();
    let text = heard.collect::<Vec<Bytes>>().await.concat();
    // The file that it has open, and the three newest rotated ones.
    let expected = format!("first\n{}{}", joined(&lines[..100]), joined(&lines[500..]));
    assert_eq!(String::from_utf8(text).unwrap(), expected);
}

#[tokio::test]
async fn interrupted_compression_leaves_no_trace() {
    let fixture = Fixture::with_rules(SMALL);
    let run = fixture.begin(0);
    let lines = write_files(&fixture, &run, 1..2);
    let stop = AtomicBool::new(true);
    say(&run, AT, &["z".repeat(5000).as_str()]);
    fixture.logs.rotate_all(time(&check(2)), &stop);
    assert_eq!(fixture.files(), ["0.log", "0.log.20260102-030010"]);
    run.finish();
    // What a killed node has left is removed, and its source is still there.
    fs::write(fixture.container_dir().join("0.log.20260102-030010.tmp"), "half").unwrap();
    let fixture = fixture.restarted();
    assert!(fixture.read(0, &all()).await.starts_with(&joined(&lines)));
    assert_eq!(fixture.files(), ["0.log", "0.log.20260102-030010"]);
}

#[tokio::test]
async fn rotated_file_that_somebody_removed_is_left_out() {
    let fixture = Fixture::with_rules(SMALL);
    let run = fixture.begin(0);
    let lines = write_files(&fixture, &run, 1..3);
    fs::remove_file(fixture.container_dir().join("0.log.20260102-030020")).unwrap();
    assert_eq!(fixture.read(0, &all()).await, joined(&lines[..100]));
    write_files(&fixture, &run, 3..4);
    assert_eq!(fixture.files(), ["0.log", "0.log.20260102-030010.gz", "0.log.20260102-030030"]);
}

#[tokio::test(start_paused = true)]
async fn maintenance_rotates_after_each_interval() {
    let fixture = Fixture::with_rules(SMALL);
    let run = fixture.begin(0);
    let maintenance = tokio::spawn(fixture.logs.clone().maintain());
    say(&run, AT, &["w".repeat(5000).as_str()]);
    while fixture.files().len() == 1 {
        tokio::time::sleep(SMALL.interval).await;
    }
    assert_eq!(fixture.files().len(), 2);
    maintenance.abort();
}
