//! A log agent that reads containers' logs, beside a reader that looks at no line.

mod agent;
mod containers;
mod quiet;
mod reading;

use std::time::Duration;

use self::{containers::ContainerLogs, reading::LogReadings};
use super::{
    BenchPlan,
    cluster_stub::ClusterStub,
    section::{BenchSection, format_mib, median},
};

/// Pods in the cache of the agent, some of which write the logs.
const PODS: usize = 500;
/// What a core of the machine has to do.
const MIN_LINES_PER_SECOND: f64 = 1_150_000.0;
/// Open files of an agent that is measured for its memory.
const OPEN_FILES: usize = 1000;
const MAX_MEMORY_BYTES: u64 = 30 << 20;
/// Share of a core that an agent may use when nothing is written.
const MAX_IDLE_SHARE: f64 = 0.005;

/// What lines hold, and what it may cost to read them.
struct LogCase {
    name: &'static str,
    /// The content of each line.
    body: &'static str,
    parses_json: bool,
    max_ratio: f64,
}

const CASES: [LogCase; 2] = [
    LogCase {
        name: "CRI lines of 160 bytes",
        body: "the order 4711 of customer 0815 was sold for 12.50 EUR and is now on its way to the warehouse with \
               number 7, said the s",
        parses_json: false,
        max_ratio: 2.0,
    },
    LogCase {
        name: "JSON bodies, parsed",
        body: r#"{"level":"info","ts":"2026-11-18T03:46:53.562319Z","msg":"request done","http":{"method":"GET","path":"/a?b=c","status":200},"ms":12.5,"user":"4711","trace_id":"4bf92f3577b34da6a3ce929d0e0e4731","span_id":"00f067aa0ba902b7"}"#,
        parses_json: true,
        max_ratio: 5.0,
    },
];

/// Measures the cost of lines, memory and CPU with many files, and the delay of quiet containers beside a noisy one.
pub(crate) fn run(plan: &BenchPlan) -> anyhow::Result<BenchSection> {
    let workload = plan.logs;
    let how = format!(
        "The pipeline is `file_log → memory_limiter → k8s_attributes → otlp` over gRPC, uncompressed. {} containers \
         have written {} lines each before the agent finds their files, which are in the page cache. The agent knows \
         {PODS} pods. The reader reads the same files at the same time, finds the line ends, and sends as many bytes \
         for each line to a backend of its own. CPU time is counted until every line has arrived. The median of {} \
         rounds is shown, and behind it all of them.",
        workload.containers, workload.lines, workload.rounds
    );
    let mut section = BenchSection::new("Logs of containers beside a bare reader", how);
    section.header(&["", "CPU ns/line", "rounds", "ratio", "lines per CPU second", "memory", "peak"]);
    let stub = ClusterStub::start(PODS)?;
    for case in &CASES {
        measure_case(case, workload, &stub, &mut section)?;
    }
    measure_open_files(&stub, &mut section)?;
    quiet::measure(plan, &stub, &mut section)?;
    Ok(section)
}

/// How much is written and read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LogWorkload {
    pub containers: usize,
    /// Lines of each container.
    pub lines: usize,
    pub rounds: usize,
    /// For how long one container is noisy.
    pub noisy: Duration,
}

impl LogWorkload {
    pub(crate) fn new(is_quick: bool) -> Self {
        if is_quick {
            Self { containers: 5, lines: 20_000, rounds: 1, noisy: Duration::from_secs(5) }
        } else {
            Self { containers: 10, lines: 200_000, rounds: 5, noisy: Duration::from_secs(20) }
        }
    }
}

fn measure_case(
    case: &LogCase,
    workload: LogWorkload,
    stub: &ClusterStub,
    section: &mut BenchSection,
) -> anyhow::Result<()> {
    let logs = ContainerLogs::write("logs-written", workload.containers, workload.lines, case.body)?;
    let readings = LogReadings::run(&logs, case, workload.rounds, stub)?;
    let ratio = readings.ratio();
    let agent_cpu = median(readings.agent.iter().map(|reading| reading.cpu).collect());
    for (name, readings, ratio) in [("reader", &readings.reader, 1.0), ("agent", &readings.agent, ratio)] {
        let cpu = median(readings.iter().map(|reading| reading.cpu).collect());
        let all: Vec<_> = readings.iter().map(|reading| format!("{:.0}", reading.cpu)).collect();
        section.row([
            format!("{name}, {}", case.name),
            format!("{cpu:.0}"),
            all.join(", "),
            format!("{ratio:.2}"),
            format!("{:.0}", 1e9 / cpu),
            format_mib(readings.iter().map(|reading| reading.memory).max().unwrap_or(0)),
            format_mib(readings.iter().map(|reading| reading.peak).max().unwrap_or(0)),
        ]);
    }
    let name = case.name;
    let max_ratio = case.max_ratio;
    section.check(
        format!("{name}: CPU at most {max_ratio} × the reader's"),
        format!("{ratio:.2} ×"),
        ratio <= max_ratio,
    );
    let rate = 1e9 / agent_cpu;
    section.check(
        format!("{name}: at least {MIN_LINES_PER_SECOND} lines per CPU second"),
        format!("{rate:.0}"),
        rate >= MIN_LINES_PER_SECOND,
    );
    section.check_none(format!("{name}: lines lost"), readings.agent.iter().map(|reading| reading.missing).sum());
    section.check_none(format!("{name}: lines doubled"), readings.agent.iter().map(|reading| reading.surplus).sum());
    Ok(())
}

/// Memory and CPU of an agent with many files that nobody writes to.
fn measure_open_files(stub: &ClusterStub, section: &mut BenchSection) -> anyhow::Result<()> {
    /// Until the files have been read and nothing is in flight.
    const SETTLE_PERIOD: Duration = Duration::from_secs(10);
    const IDLE_PERIOD: Duration = Duration::from_secs(20);
    let logs = ContainerLogs::write("logs-open", OPEN_FILES, 10, CASES[0].body)?;
    let agent = agent::LogAgent::start("logs-open-agent", stub, false)?;
    logs.link_to(&agent.pods)?;
    reading::wait_for_records(&agent.sink, logs.lines())?;
    std::thread::sleep(SETTLE_PERIOD);
    let before = agent.process.cpu_time()?;
    std::thread::sleep(IDLE_PERIOD);
    let share = (agent.process.cpu_time()? - before).as_secs_f64() / IDLE_PERIOD.as_secs_f64();
    let memory = agent.process.memory()?;
    agent.process.stop()?;
    section.check(
        format!("{OPEN_FILES} open files: memory at most {}", format_mib(MAX_MEMORY_BYTES)),
        format!("{}, {} at its peak", format_mib(memory.now), format_mib(memory.peak)),
        memory.now <= MAX_MEMORY_BYTES,
    );
    section.check(
        format!("{OPEN_FILES} open files: at most {:.1} % of a core when idle", MAX_IDLE_SHARE * 100.0),
        format!("{:.2} %", share * 100.0),
        share <= MAX_IDLE_SHARE,
    );
    Ok(())
}
