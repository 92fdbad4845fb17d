//! How long a server takes to start, and what it holds when nobody asks.

use std::{
    thread::sleep,
    time::{Duration, Instant},
};

use super::{Server, Size};
use crate::bench::check::{Section, median, mib};

/// From the start of the process to its line `ready`, in milliseconds.
const MAX_START: f64 = 100.0;
/// Without objects of users and without a connection.
const MAX_IDLE: u64 = 25 << 20;
/// What starts has settled by then.
const WAIT: Duration = Duration::from_secs(5);

pub(super) fn measure(size: Size, section: &mut Section) -> anyhow::Result<()> {
    let (mut times, mut cpu) = (Vec::new(), Vec::new());
    for _ in 0..size.starts {
        let start = Instant::now();
        let server = Server::start("apiserver-start", &[])?;
        times.push(start.elapsed().as_secs_f64() * 1000.0);
        cpu.push(server.process.cpu()?.as_secs_f64() * 1000.0);
        server.process.stop()?;
    }
    let time = median(times);
    let shown = format!("{time:.0} ms, with {:.0} ms of CPU time", median(cpu));
    section.check(format!("from start to ready at most {MAX_START:.0} ms"), shown, time <= MAX_START);
    let server = Server::start("apiserver-idle", &[])?;
    sleep(WAIT);
    let memory = server.process.memory()?;
    let text = format!("{}, of which {} are not pages of the binary", mib(memory.now), mib(memory.own));
    section.check(format!("idle memory at most {}", mib(MAX_IDLE)), text, memory.now <= MAX_IDLE);
    server.process.stop()
}
