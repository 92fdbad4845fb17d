//! The output of a process on its way to the log.

use tokio::{io::AsyncWriteExt, net::unix::pipe};

use super::{super::output::MAX_BYTES_PER_SECOND, *};
use crate::kubelet::process::ProcessOutput;

#[tokio::test]
async fn both_streams_of_a_process_are_kept_until_they_end() {
    let fixture = Fixture::new();
    let run = fixture.begin(0);
    let (mut out, stdout) = pipe::pipe().unwrap();
    let (mut err, stderr) = pipe::pipe().unwrap();
    let keeping = tokio::spawn(run.clone().store_output(ProcessOutput { stdout, stderr }));
    out.write_all(b"hello\nwor").await.unwrap();
    err.write_all(b"\xff oh\n").await.unwrap();
    out.write_all(b"ld").await.unwrap();
    drop((out, err));
    keeping.await.unwrap();
    let written = fs::read(fixture.container_dir().join("0.log")).unwrap();
    let entries = written.split(|byte| *byte == b'\n').filter(|entry| !entry.is_empty());
    let mut parts: Vec<Vec<u8>> =
        entries.map(|entry| entry.splitn(2, |byte| *byte == b' ').nth(1).unwrap().to_vec()).collect();
    parts.sort_unstable();
    assert_eq!(parts, [b"stderr F \xff oh".to_vec(), b"stdout F hello".to_vec(), b"stdout P world".to_vec()]);
    let follow = LogOptions { follow: true, ..all() };
    let pieces = fixture.logs.open(&request(&follow), Some(&running(0))).await.unwrap();
    assert_eq!(pieces.collect::<Vec<Bytes>>().await.concat().len(), "hello\nworld? oh\n".len());
}

/// Much output, rotated meanwhile: every line is in one of the files, in order.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fast_writer_loses_nothing_when_its_log_is_rotated() {
    const BATCHES: usize = 10;
    let rules = LogRotation { max_bytes: 64 << 10, max_files: 1000, interval: Duration::from_secs(10) };
    let fixture = Fixture::with_rules(rules);
    let run = fixture.begin(0);
    let (out, stdout) = pipe::pipe().unwrap();
    let (err, stderr) = pipe::pipe().unwrap();
    drop(err);
    let keeping = tokio::spawn(run.store_output(ProcessOutput { stdout, stderr }));
    let dir = fixture.container_dir();
    let writing = tokio::spawn(async move {
        let mut out = out;
        for batch in 0..BATCHES {
            let lines: String = (0..10_000).map(|line| format!("line {} of many\n", batch * 10_000 + line)).collect();
            out.write_all(lines.as_bytes()).await.unwrap();
            // Rotated at least once for each batch, at any of its bytes. A file that is being compressed has up to
            // three names.
            let rotations = || {
                let times = names(&dir).iter().filter_map(|name| name.split('.').nth(2).map(str::to_owned)).collect();
                HashSet::<String>::len(&times)
            };
            while rotations() < batch {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        }
    });
    for number in 0.. {
        let second = Timestamp::from_second(1_800_000_000 + number).unwrap();
        let logs = fixture.logs.clone();
        tokio::task::spawn_blocking(move || logs.rotate_all(second, &AtomicBool::new(false))).await.unwrap();
        if keeping.is_finished() {
            break;
        }
    }
    writing.await.unwrap();
    keeping.await.unwrap();
    assert!(fixture.files().len() >= BATCHES, "{:?}", fixture.files());
    let read = fixture.read(0, &all()).await;
    assert!(read.lines().eq((0..BATCHES * 10_000).map(|line| format!("line {line} of many"))));
}

#[tokio::test(start_paused = true)]
async fn writer_that_is_too_fast_waits() {
    let fixture = Fixture::new();
    let run = fixture.begin(0);
    let (mut out, stdout) = pipe::pipe().unwrap();
    let (err, stderr) = pipe::pipe().unwrap();
    drop(err);
    let begun = tokio::time::Instant::now();
    let keeping = tokio::spawn(run.store_output(ProcessOutput { stdout, stderr }));
    // Two bytes of output are forty bytes of log.
    let lines = b"y\n".repeat(128 << 10);
    out.write_all(&lines).await.unwrap();
    drop(out);
    keeping.await.unwrap();
    let length = fs::metadata(fixture.container_dir().join("0.log")).unwrap().len();
    let least = length as f64 / f64::from(MAX_BYTES_PER_SECOND);
    let passed = begun.elapsed().as_secs_f64();
    assert!(length > 4 << 20 && passed > least - 0.05, "{length} bytes in {passed} s");
}
