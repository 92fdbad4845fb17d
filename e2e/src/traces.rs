//! Traces in stories: received by a collector, rendered as text, and compared with an expected text.
//!
//! *Guaranteed.* [`TraceReceiver::wait_until_matches`] waits for a trace to be as expected rather than for a
//! time; its failure message contains the whole trace as text. Every span of the trace must be expected and
//! present; a second root and an orphan are spans like any other. That no further spans arrive is for the story
//! to verify: once all exporters have ended, [`TraceReceiver::assert_matches`] compares again, and
//! [`TraceReceiver::assert_only_in`] verifies that there are no other traces.
//!
//! *Assumed.* Everything in a story exports to [`TraceReceiver::grpc`] or [`TraceReceiver::http`].

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
    expected::ExpectedTrace,
    span::{ExportedSpan, SpanReference, SpanSet},
    tree::{CallerVisibility, TraceTree},
};
use crate::{
    CollectorProcess, ConfigBuilder,
    config::otlp_at,
    traces::tree::API_SERVER_SERVICE,
    wait::{wait_for_ok, wait_until},
};

pub struct TraceReceiver {
    collector: CollectorProcess,
    state: Mutex<ReceiverState>,
    callers: CallerVisibility,
    /// Locked where stories would disturb each other; dropped after the collector.
    external_lock: Option<MutexGuard<'static, ()>>,
}

/// Names the address of this machine to which the API server of another cluster exports its spans. Without it
/// they are not received.
pub const OTLP_VARIABLE: &str = "KUBEWAKE_E2E_OTLP";

/// Held by the one story that runs on another cluster at a time: all stories share its kinds and that address.
static EXTERNAL_CLUSTER_LOCK: Mutex<()> = Mutex::new(());

#[derive(Default)]
struct ReceiverState {
    /// How far the collector's file was read.
    offset: u64,
    /// An incomplete line at the end.
    rest: Vec<u8>,
    spans: SpanSet,
}

impl Default for TraceReceiver {
    fn default() -> Self {
        Self::start()
    }
}

impl TraceReceiver {
    pub fn start() -> Self {
        Self::start_at("127.0.0.1:0")
    }

    fn start_at(address: &str) -> Self {
        let config = ConfigBuilder::exporting_to("file", r#"{path: "${env:DIR}/spans.json"}"#);
        let collector = CollectorProcess::with_config(config.receiver("otlp", otlp_at(address, "127.0.0.1:0"))).start();
        Self { collector, state: Mutex::default(), callers: CallerVisibility::Trusted, external_lock: None }
    }

    /// Starts to receive for a story on another cluster, which has it alone until this is dropped. If its API
    /// server exports to this machine ([`OTLP_VARIABLE`]), it starts a new trace for callers that it does not
    /// trust, as any kube-apiserver does.
    pub fn start_external() -> Self {
        let external_lock = Some(EXTERNAL_CLUSTER_LOCK.lock().unwrap_or_else(PoisonError::into_inner));
        let (traces, callers) = match std::env::var(OTLP_VARIABLE) {
            Ok(address) => (Self::start_at(&address), CallerVisibility::Linked),
            Err(_) => (Self::start(), CallerVisibility::Hidden),
        };
        Self { external_lock, ..traces.with_callers(callers) }
    }

    /// Sets how the API server treats the trace context of its callers.
    pub fn with_callers(mut self, callers: CallerVisibility) -> Self {
        self.callers = callers;
        self
    }

    /// How the API server appears in traces.
    pub fn callers(&self) -> CallerVisibility {
        self.callers
    }

    /// Address of OTLP over gRPC.
    pub fn grpc(&self) -> SocketAddr {
        self.collector.grpc()
    }

    /// Address of OTLP over HTTP.
    pub fn http(&self) -> SocketAddr {
        self.collector.http()
    }

    /// Sets the usual variables of a program so that it exports its spans here, with a short delay.
    pub fn export_from<'a>(&self, program: &'a mut Command) -> &'a mut Command {
        program.env("OTEL_EXPORTER_OTLP_ENDPOINT", format!("http://{}", self.grpc()));
        program.env("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc").env("OTEL_BSP_SCHEDULE_DELAY", "100")
    }

    /// The same for a program that starts traces. A traced API server elsewhere may decide on sampling by
    /// itself, so that a program that follows its decision would record nothing.
    pub fn export_all_from<'a>(&self, program: &'a mut Command) -> &'a mut Command {
        if self.callers != CallerVisibility::Trusted {
            program.env("OTEL_TRACES_SAMPLER", "always_on");
        }
        self.export_from(program)
    }

    /// Waits until the API server's spans arrive, where they are exported. Its exporter may have had no
    /// receiver since the previous story, and then retries only after a while: up to two minutes in
    /// kube-apiserver. `nudge` makes a request that is traced.
    pub fn wait_for_api_server(&self, nudge: impl Fn()) {
        if self.callers == CallerVisibility::Linked && self.external_lock.is_some() {
            wait_until("spans of the API server arrive", || {
                nudge();
                self.with_spans(|spans| spans.from_service(API_SERVER_SERVICE).next().is_some())
            });
        }
    }

    /// Writes a TracingConfiguration for an API server that samples everything and trusts these groups.
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

    pub fn spans(&self) -> SpanSet {
        self.with_spans(SpanSet::clone)
    }

    /// Calls `look` with all spans so far, without a copy of them.
    pub fn with_spans<T>(&self, look: impl FnOnce(&SpanSet) -> T) -> T {
        let mut received = self.state.lock().unwrap();
        received.read_new_lines(&self.collector.folder().join("spans.json"));
        look(&received.spans)
    }

    /// Waits until `look` finds a value in the spans.
    pub fn wait_for<T>(&self, what: &str, look: impl Fn(&SpanSet) -> Option<T>) -> T {
        wait_for_ok(|| {
            self.with_spans(|spans| {
                let known = || spans.iter().map(|span| format!("{} [{}]", span.name, span.service)).collect();
                look(spans).ok_or_else(|| {
                    let known: BTreeSet<String> = known();
                    format!("{what}; known spans: {known:#?}")
                })
            })
        })
    }

    /// Waits for a span of this name that satisfies the predicate.
    pub fn wait_for_span(&self, name: &str, is_it: impl Fn(&ExportedSpan) -> bool) -> ExportedSpan {
        self.wait_for(name, |spans| spans.with_name(name).find(|span| is_it(span)).cloned())
    }

    pub fn wait_until_matches(&self, trace: &str, expected: &str) {
        wait_for_ok(|| self.compare(trace, expected));
    }

    /// Asserts that a trace is as expected; on another cluster, whose API server does not end with the story,
    /// waits for it.
    pub fn assert_matches(&self, trace: &str, expected: &str) {
        if self.external_lock.is_some() {
            return self.wait_until_matches(trace, expected);
        }
        if let Err(differences) = self.compare(trace, expected) {
            panic!("{differences}");
        }
    }

    /// Asserts that these services have spans in these traces only.
    pub fn assert_only_in(&self, services: &[&str], traces: &[&str]) {
        self.with_spans(|spans| {
            let all = spans.traces_of_services(services);
            let others: Vec<&String> = all.iter().filter(|trace| !traces.contains(&trace.as_str())).collect();
            let shown = others.iter().map(|trace| self.show_among(spans, trace)).collect::<String>();
            assert!(others.is_empty(), "{services:?} have spans in other traces:\n{shown}");
        });
    }

    /// Asserts that every other trace of this service has a single root and no span beyond the expected text,
    /// which has a root for each sort of trace. Expected spans may be missing. Returns the number of traces.
    pub fn assert_all_match(&self, service: &str, except: &[&str], expected: &str) -> usize {
        self.with_spans(|spans| {
            // Traces are compared one by one, without following links.
            let callers = if self.callers == CallerVisibility::Hidden {
                CallerVisibility::Hidden
            } else {
                CallerVisibility::Trusted
            };
            let expected = ExpectedTrace::parse(expected, callers);
            let mut others = spans.traces_of_services(&[service]);
            others.retain(|trace| !except.contains(&trace.as_str()));
            for trace in &others {
                let tree = TraceTree::from_trace(spans, trace, callers);
                assert_eq!(tree.roots().count(), 1, "trace {trace} does not have exactly one root\n{tree}");
                let unexpected = expected.unexpected(&tree).unwrap_or_default();
                assert!(unexpected.is_empty(), "trace {trace} has unexpected spans\n{unexpected}");
            }
            others.len()
        })
    }

    pub fn show(&self, trace: &str) -> String {
        self.with_spans(|spans| self.show_among(spans, trace))
    }

    fn show_among(&self, spans: &SpanSet, trace: &str) -> String {
        format!("trace {trace}\n{}", TraceTree::from_trace(spans, trace, self.callers))
    }

    fn compare(&self, trace: &str, expected: &str) -> Result<(), String> {
        let tree = self.with_spans(|spans| TraceTree::from_trace(spans, trace, self.callers));
        let differences = ExpectedTrace::parse(expected, self.callers).differences(&tree);
        differences.map_or(Ok(()), |text| Err(format!("trace {trace} differs from the expected one\n{text}")))
    }
}

impl SpanSet {
    /// The spans in a file that a collector's `file` exporter writes.
    pub fn in_file(path: &Path) -> Self {
        let mut received = ReceiverState::default();
        received.read_new_lines(path);
        received.spans
    }
}

impl ReceiverState {
    /// Reads the lines that were added since. A line is complete with its newline.
    fn read_new_lines(&mut self, path: &Path) {
        // The file is created with the first span.
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
