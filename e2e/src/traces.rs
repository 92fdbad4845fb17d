//! Traces as a story tells them: received by a collector of our own, shown as text, compared with a text.
//!
//! *Guarantees.* [`Traces::becomes`] waits for a trace to be as expected and never for a time; what it complains of is the whole trace as text.
//! Every span of the trace must be expected and there, a second root and an orphan are spans like any other. That nothing
//! more comes is for the story to make sure: once all that exports has ended, [`Traces::is`] looks again, and
//! [`Traces::tell_only`] sees that there is nothing beside.
//!
//! *Assumes* that everything in a story exports to [`Traces::grpc`] or [`Traces::http`].

pub mod expected;
pub mod span;
pub mod tree;

#[cfg(test)]
mod tests;

use std::{
    collections::BTreeSet,
    fs::File,
    io::{Read, Seek, SeekFrom},
    net::SocketAddr,
    path::{Path, PathBuf},
    process::Command,
    sync::{Mutex, MutexGuard, PoisonError},
};

pub use self::{
    expected::Expected,
    span::{Span, SpanRef, Spans},
    tree::{Callers, Tree},
};
use crate::{
    Collector, Config,
    config::otlp_at,
    traces::tree::API_SERVER,
    wait::{eventually, until_ok},
};

/// Everything that was received.
pub struct Traces {
    collector: Collector,
    read: Mutex<Received>,
    callers: Callers,
    /// Where others would disturb: let go of after the collector.
    alone: Option<MutexGuard<'static, ()>>,
}

/// Names the address of this machine to which the API server of another cluster sends its spans. Without it nobody hears them.
pub const OTLP: &str = "KUBEWAKE_E2E_OTLP";

/// Held by the one story that is told on another cluster at a time, as all of them have the same kinds and that address.
static ALONE: Mutex<()> = Mutex::new(());

#[derive(Default)]
struct Received {
    /// How far the collector's file was read.
    offset: u64,
    /// A line that was not whole yet.
    rest: Vec<u8>,
    spans: Spans,
}

impl Default for Traces {
    fn default() -> Self {
        Self::start()
    }
}

impl Traces {
    /// Begins to receive.
    pub fn start() -> Self {
        Self::start_at("127.0.0.1:0")
    }

    fn start_at(address: &str) -> Self {
        let config = Config::to("file", r#"{path: "${env:DIR}/spans.json"}"#);
        let collector = Collector::with(config.receiver("otlp", otlp_at(address, "127.0.0.1:0"))).start();
        Self { collector, read: Mutex::default(), callers: Callers::Trusted, alone: None }
    }

    /// Begins to receive for a story on another cluster, which is alone there until this is dropped. If the spans of its API server come here ([`OTLP`]), that one begins a trace for
    /// whoever it does not trust, as any kube-apiserver does.
    pub fn elsewhere() -> Self {
        let alone = Some(ALONE.lock().unwrap_or_else(PoisonError::into_inner));
        let (traces, callers) = match std::env::var(OTLP) {
            Ok(address) => (Self::start_at(&address), Callers::Linked),
            Err(_) => (Self::start(), Callers::Dark),
        };
        Self { alone, ..traces.seen_by(callers) }
    }

    /// Looks at traces of an API server that treats its callers like this.
    pub fn seen_by(mut self, callers: Callers) -> Self {
        self.callers = callers;
        self
    }

    /// How the API server appears in them.
    pub fn callers(&self) -> Callers {
        self.callers
    }

    /// Where OTLP is taken over gRPC.
    pub fn grpc(&self) -> SocketAddr {
        self.collector.grpc()
    }

    /// Where OTLP is taken over HTTP.
    pub fn http(&self) -> SocketAddr {
        self.collector.http()
    }

    /// Tells a program by the usual variables to send its spans here, and soon.
    pub fn export_from<'a>(&self, program: &'a mut Command) -> &'a mut Command {
        program.env("OTEL_EXPORTER_OTLP_ENDPOINT", format!("http://{}", self.grpc()));
        program.env("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc").env("OTEL_BSP_SCHEDULE_DELAY", "100")
    }

    /// The same, of a program that begins what is told. An API server elsewhere may be traced and decide by itself what is recorded, so that whoever follows its
    /// decision records nothing.
    pub fn export_all_from<'a>(&self, program: &'a mut Command) -> &'a mut Command {
        if self.callers != Callers::Trusted {
            program.env("OTEL_TRACES_SAMPLER", "always_on");
        }
        self.export_from(program)
    }

    /// Waits until the API server's spans come here, where they do. Its exporter may have been left without anybody who listens since the story before, and
    /// tries again only after a while: up to two minutes in kube-apiserver. `nudge` makes a request that is traced.
    pub fn until_heard(&self, nudge: impl Fn()) {
        if self.callers == Callers::Linked && self.alone.is_some() {
            eventually("the API server's spans come here", || {
                nudge();
                self.with_spans(|spans| spans.of(API_SERVER).next().is_some())
            });
        }
    }

    /// Writes a TracingConfiguration for an API server, which samples everything and trusts these groups.
    pub fn api_server_config(&self, trusted: &[&str]) -> PathBuf {
        let path = self.collector.folder().join("tracing.yaml");
        let text = format!(
            "apiVersion: apiserver.config.k8s.io/v1\nkind: TracingConfiguration\nendpoint: {}\n\
             samplingRatePerMillion: 1000000\ntrustedGroups: {trusted:?}\n",
            self.grpc()
        );
        std::fs::write(&path, text).unwrap();
        path
    }

    /// All spans so far.
    pub fn spans(&self) -> Spans {
        self.with_spans(Spans::clone)
    }

    /// Looks at all spans so far, without a copy of them.
    pub fn with_spans<T>(&self, look: impl FnOnce(&Spans) -> T) -> T {
        let mut received = self.read.lock().unwrap();
        received.read_on(&self.collector.folder().join("spans.json"));
        look(&received.spans)
    }

    /// Waits until there is something among the spans.
    pub fn until<T>(&self, what: &str, look: impl Fn(&Spans) -> Option<T>) -> T {
        until_ok(|| {
            self.with_spans(|spans| {
                let known = || spans.iter().map(|span| format!("{} [{}]", span.name, span.service)).collect();
                look(spans).ok_or_else(|| {
                    let known: BTreeSet<String> = known();
                    format!("{what}; there are {known:#?}")
                })
            })
        })
    }

    /// Waits for a span of this name for which something holds.
    pub fn span(&self, name: &str, is_it: impl Fn(&Span) -> bool) -> Span {
        self.until(name, |spans| spans.named(name).find(|span| is_it(span)).cloned())
    }

    /// Waits until a trace is as expected.
    pub fn becomes(&self, trace: &str, expected: &str) {
        until_ok(|| self.compare(trace, expected));
    }

    /// Whether a trace is as expected now; on another cluster, whose API server does not end with the story, soon.
    pub fn is(&self, trace: &str, expected: &str) {
        if self.alone.is_some() {
            return self.becomes(trace, expected);
        }
        if let Err(differences) = self.compare(trace, expected) {
            panic!("{differences}");
        }
    }

    /// Whether these services have spans in these traces only.
    pub fn tell_only(&self, services: &[&str], traces: &[&str]) {
        self.with_spans(|spans| {
            let all = spans.traces_of(services);
            let others: Vec<&String> = all.iter().filter(|trace| !traces.contains(&trace.as_str())).collect();
            let shown = others.iter().map(|trace| self.show_among(spans, trace)).collect::<String>();
            assert!(others.is_empty(), "{services:?} have spans in other traces, too:\n{shown}");
        });
    }

    /// Whether every other trace of this service has one root, and nothing that the text does not have, which has a root for each sort of trace; gives how many there are. What of the text a trace has not is no matter.
    pub fn are_among(&self, service: &str, except: &[&str], expected: &str) -> usize {
        self.with_spans(|spans| {
            // What is in a trace of its own is told by itself.
            let callers = if self.callers == Callers::Dark { Callers::Dark } else { Callers::Trusted };
            let expected = Expected::read(expected, callers);
            let mut others = spans.traces_of(&[service]);
            others.retain(|trace| !except.contains(&trace.as_str()));
            for trace in &others {
                let tree = Tree::of(spans, trace, callers);
                assert_eq!(tree.roots().count(), 1, "trace {trace} has not one root\n{tree}");
                let unexpected = expected.unexpected(&tree).unwrap_or_default();
                assert!(unexpected.is_empty(), "trace {trace} has more than is expected\n{unexpected}");
            }
            others.len()
        })
    }

    /// A trace as text.
    pub fn show(&self, trace: &str) -> String {
        self.with_spans(|spans| self.show_among(spans, trace))
    }

    fn show_among(&self, spans: &Spans, trace: &str) -> String {
        format!("trace {trace}\n{}", Tree::of(spans, trace, self.callers))
    }

    fn compare(&self, trace: &str, expected: &str) -> Result<(), String> {
        let tree = self.with_spans(|spans| Tree::of(spans, trace, self.callers));
        let differences = Expected::read(expected, self.callers).differences(&tree);
        differences.map_or(Ok(()), |text| Err(format!("trace {trace} is not as expected\n{text}")))
    }
}

impl Spans {
    /// Those in a file that a collector's `file` exporter writes.
    pub fn in_file(path: &Path) -> Self {
        let mut received = Received::default();
        received.read_on(path);
        received.spans
    }
}

impl Received {
    /// Reads what was written since. Lines are whole once their end is there.
    fn read_on(&mut self, path: &Path) {
        // There is no file before the first span.
        let Ok(mut file) = File::open(path) else { return };
        file.seek(SeekFrom::Start(self.offset)).unwrap();
        self.offset += file.read_to_end(&mut self.rest).unwrap() as u64;
        let Some(end) = self.rest.iter().rposition(|byte| *byte == b'\n') else { return };
        let rest = self.rest.split_off(end + 1);
        let lines = std::mem::replace(&mut self.rest, rest);
        for line in lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            self.spans.add(&serde_json::from_slice(line).expect("the collector writes JSON"));
        }
    }
}
