//! One container writes as fast as a disk allows, and 99 others a line now and then.

use std::{
    fs::{self, File},
    io::Write as _,
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    thread::{self, sleep},
    time::{Duration, Instant},
};

use super::{
    agent::LogAgent,
    containers::{pod_folder, timestamp},
    reading::records,
};
use crate::bench::{BenchPlan, cluster_stub::ClusterStub, section::BenchSection};

const QUIET_CONTAINERS: usize = 99;
/// How often each of them writes a line.
const LINE_INTERVAL: Duration = Duration::from_millis(100);
/// What the noisy container writes.
const NOISY_BYTES_PER_SECOND: usize = 50_000_000;
const NOISY_CONTENT: &str =
    "noise noise noise noise noise noise noise noise noise noise noise noise noise noise noise noise noise";
/// How late a line of a quiet container may be.
const MAX_DELAY: Duration = Duration::from_secs(1);
const SAMPLE_INTERVAL: Duration = Duration::from_millis(20);
/// The backend gets the lines of quiet containers alone, so that it can count them.
const FILTER: &str = "  filter:\n    logs:\n      exclude:\n        match_type: strict\n        resource_attributes:\n          \
                      - {key: k8s.pod.name, value: shop-6c45f8d6f6-00099}\n";

/// Records how late lines of quiet containers arrive.
pub(super) fn measure(plan: &BenchPlan, stub: &ClusterStub, section: &mut BenchSection) -> anyhow::Result<()> {
    let agent = LogAgent::start_with("logs-noisy-agent", stub, false, FILTER)?;
    let create = |number: usize| -> anyhow::Result<File> {
        let folder = agent.pods.join(pod_folder(number)).join("main");
        fs::create_dir_all(&folder)?;
        Ok(File::create(folder.join("0.log"))?)
    };
    let mut quiet = (0..QUIET_CONTAINERS).map(create).collect::<anyhow::Result<Vec<_>>>()?;
    let mut noisy = create(QUIET_CONTAINERS)?;
    let (is_over, noisy_bytes) = (AtomicBool::new(false), AtomicU64::new(0));
    let (written, delay) = thread::scope(|scope| {
        let noise = scope.spawn(|| make_noise(&mut noisy, &is_over, &noisy_bytes));
        let outcome = write_quiet_lines(&mut quiet, plan.logs.noisy, &agent);
        is_over.store(true, Ordering::Relaxed);
        // A panic is one of the bench.
        let noise = noise.join().unwrap_or(Ok(()));
        noise.and(outcome)
    })?;
    let rate = noisy_bytes.load(Ordering::Relaxed) as f64 / plan.logs.noisy.as_secs_f64() / 1e6;
    agent.process.stop()?;
    section.check(
        format!("{QUIET_CONTAINERS} quiet containers beside one of {rate:.0} MB/s: lines at most 1 s late"),
        format!("{} ms, of {written} lines", delay.as_millis()),
        delay <= MAX_DELAY,
    );
    Ok(())
}

/// Writes at a fixed rate until it is over.
fn make_noise(file: &mut File, is_over: &AtomicBool, written: &AtomicU64) -> anyhow::Result<()> {
    let line = format!("{} stdout F {NOISY_CONTENT}\n", timestamp(1));
    let block = line.repeat(NOISY_BYTES_PER_SECOND / 100 / line.len());
    let start = Instant::now();
    while !is_over.load(Ordering::Relaxed) {
        file.write_all(block.as_bytes())?;
        let total = written.fetch_add(block.len() as u64, Ordering::Relaxed) + block.len() as u64;
        let due = start + Duration::from_secs_f64(total as f64 / NOISY_BYTES_PER_SECOND as f64);
        sleep(due.saturating_duration_since(Instant::now()));
    }
    Ok(())
}

/// Writes a line to each file again and again. Returns how many lines were written, and the longest time from when a
/// line was written until as many lines had arrived.
fn write_quiet_lines(files: &mut [File], duration: Duration, agent: &LogAgent) -> anyhow::Result<(u64, Duration)> {
    let start = Instant::now();
    // When the first so many lines had been written.
    let mut marks: Vec<(u64, Instant)> = Vec::new();
    let (mut written, mut delay) = (0, Duration::ZERO);
    let mut next = start;
    while start.elapsed() < duration || !marks.is_empty() {
        if start.elapsed() < duration && Instant::now() >= next {
            for file in files.iter_mut() {
                writeln!(file, "{} stdout F quiet", timestamp(written as usize))?;
                written += 1;
            }
            marks.push((written, Instant::now()));
            next += LINE_INTERVAL;
        }
        let arrived = records(&agent.sink)?;
        marks.retain(|(count, since)| {
            delay = delay.max(since.elapsed());
            *count > arrived
        });
        if delay > 60 * MAX_DELAY {
            break;
        }
        sleep(SAMPLE_INTERVAL);
    }
    Ok((written, delay))
}
