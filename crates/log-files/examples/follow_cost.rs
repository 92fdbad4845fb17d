//! What it costs to follow many logs: `cargo run --release -p kubewake-log-files --example follow_cost [LOGS]`.
//!
//! It follows logs in the layout of a kubelet, first while nothing happens, then while all of them are written.

use std::{
    fs::{self, File},
    io::Write,
    path::Path,
    time::{Duration, Instant},
};

use kubewake_log_files::{GlobPattern, LogEvent, LogFiles, LogFilesSettings, StartAt};

const IDLE_TIME: Duration = Duration::from_secs(20);

/// Bytes that are written to all logs together.
const WRITTEN_BYTES: usize = 512 << 20;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let logs: usize = std::env::args().nth(1).map_or(Ok(1_000), |logs| logs.parse())?;
    let directory = std::env::temp_dir().join(format!("follow-cost-{}", std::process::id()));
    let mut files = write_logs(&directory, logs)?;
    let pattern = GlobPattern::parse(&format!("{}/*/*/*.log", directory.display()))?;
    let mut settings = LogFilesSettings::new(vec![pattern]);
    settings.start_at = StartAt::Beginning;
    let mut follower = LogFiles::open(settings, vec!["out".to_owned()], None)?;
    let mut buffer = vec![0; 256 * 1024];

    let started = Instant::now();
    read_all(&mut follower, &mut buffer, logs as u64 * 5);
    println!("{logs} logs were found in {:?}", started.elapsed());

    let cpu = cpu_time();
    let started = Instant::now();
    while started.elapsed() < IDLE_TIME {
        follower.poll(Duration::from_secs(1));
        while let Some(turn) = follower.next_turn() {
            follower.read(turn.reader, &mut buffer);
        }
    }
    let share = (cpu_time() - cpu).as_secs_f64() / started.elapsed().as_secs_f64();
    println!("idle: {:.3} % of a core, {} KiB resident", share * 100.0, resident_kib());

    let before = follower.statistics().bytes_read;
    let line = [b'x'; 159].into_iter().chain([b'\n']);
    let piece: Vec<u8> = line.cycle().take(64 * 1024).collect();
    for index in 0..WRITTEN_BYTES / piece.len() {
        if let Some(file) = files.get_mut(index % logs) {
            file.write_all(&piece)?;
        }
    }
    let cpu = cpu_time();
    let started = Instant::now();
    read_all(&mut follower, &mut buffer, before + WRITTEN_BYTES as u64);
    let used = cpu_time() - cpu;
    let rate = WRITTEN_BYTES as f64 / used.as_secs_f64() / 1e6;
    println!("read: {:?}, {used:?} of CPU time, {rate:.0} MB/s per core", started.elapsed());
    fs::remove_dir_all(directory)?;
    Ok(())
}

fn write_logs(directory: &Path, logs: usize) -> std::io::Result<Vec<File>> {
    let write = |index: usize| {
        let container = directory.join(format!("ns_pod-{index}_uid/container"));
        fs::create_dir_all(&container)?;
        let mut file = File::create(container.join("0.log"))?;
        file.write_all(format!("{index:04}\n").as_bytes())?;
        Ok(file)
    };
    (0..logs).map(write).collect()
}

fn read_all(follower: &mut LogFiles, buffer: &mut [u8], until: u64) {
    let handle = follower.handle();
    while follower.statistics().bytes_read < until {
        for event in follower.poll(Duration::from_secs(1)) {
            if let LogEvent::Opened(stream) = event {
                for (outputs, position) in follower.reader_groups(stream) {
                    follower.open_reader(stream, outputs, position);
                }
            }
        }
        while let Some(turn) = follower.next_turn() {
            let read = follower.read(turn.reader, buffer);
            follower.advance(turn.reader, buffer.get(..read.bytes).unwrap_or_default());
            if let (Some(position), Some(outputs)) =
                (follower.reader_position(turn.reader), follower.reader_outputs(turn.reader))
            {
                outputs.iter().for_each(|output| handle.commit(output, turn.stream, position));
            }
        }
    }
}

/// The CPU time of the process, from its statistics in ticks of 10 ms.
fn cpu_time() -> Duration {
    let text = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields: Vec<&str> = text.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks = |index: usize| fields.get(index).and_then(|field| field.parse::<u64>().ok()).unwrap_or(0);
    Duration::from_millis(10 * (ticks(11) + ticks(12)))
}

fn resident_kib() -> u64 {
    let text = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or_default();
    line.split_whitespace().next().and_then(|number| number.parse().ok()).unwrap_or(0)
}
