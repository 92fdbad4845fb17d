//! Many watchers of one kind: each gets every event, in order.

use super::{ApiServerWorkload, BenchApiServer, requests::CONNECTIONS};
use crate::bench::section::{BenchSection, format_mib};

pub(super) fn measure(size: ApiServerWorkload, section: &mut BenchSection) -> anyhow::Result<()> {
    let server = BenchApiServer::start("apiserver-watchers", &[])?;
    let mut client = server.client(CONNECTIONS)?;
    let opened = client.run_command(&format!("watch {}", size.watchers))?.count("watchers");
    let before = server.process.cpu_time()?;
    client.run_command(&format!("create seen {}", size.events))?;
    let report = client.run_command("watched")?;
    let cpu = server.process.cpu_time()? - before;
    let memory = server.process.memory()?;
    let cost = cpu.as_secs_f64() * 1e6 / report.number("events");
    section.row([
        format!("event to one of {opened} watchers"),
        format!("{cost:.1}"),
        String::new(),
        report.count("events").to_string(),
        String::new(),
        String::new(),
    ]);
    let what =
        format!("{} watchers, each on its own connection, see each of {} events once, in order", opened, size.events);
    let exact = report.count("exact");
    let shown = format!("{exact} do; peak memory {}", format_mib(memory.peak));
    section.check(what, shown, exact == size.watchers as u64);
    server.process.stop()
}
