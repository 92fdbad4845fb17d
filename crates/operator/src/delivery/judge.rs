//! What the collectors say together about each pipeline. Pure.
//!
//! A pipeline is as badly off as it is at the collector where it is worst, since what that one holds is somebody's data. One that waits for whole traces also depends on
//! how the gateway gets on with the collectors behind it. A document is in force when every collector that answers does what it says of the pipeline, be it that another
//! document says the same of it. A pipeline is not judged by one that had its name before.

use std::collections::{BTreeMap, BTreeSet};

use kubewake_api::{Delivery, Reason, Signal};

use super::{
    report::{Diagnosis, EndedReport, ExporterReport, Loss, PipelineReport, Report},
    sections::{Documents, Sections},
};
use crate::{
    desk::Id,
    names,
    verdicts::{Rollout, Verdict},
};

#[cfg(test)]
mod tests;

/// The gateway's way to the collectors behind it.
const FORWARD: &str = "traces/_sticky";
/// What a collector has against a document is said up to here.
const MAX_REASON: usize = 500;

/// Which collectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tier {
    /// Those that receive.
    Gateway,
    /// Those in which whole traces wait.
    Sticky,
}

/// What one collector said, if it did.
#[derive(Clone, Debug)]
pub struct Answer {
    /// Where it stands.
    pub tier: Tier,
    /// What it said.
    pub report: Option<Report>,
}

impl Tier {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Gateway, Self::Sticky];

    /// The name of the tier's workload and document.
    pub fn name(self) -> &'static str {
        match self {
            Self::Gateway => names::GATEWAY,
            Self::Sticky => names::STICKY,
        }
    }

    /// The tier of this name.
    pub fn of(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|tier| tier.name() == name)
    }
}

/// A verdict about every pipeline that is part of a document. There is none where there are no collectors.
pub fn judge(answers: &[Answer], documents: &Documents) -> BTreeMap<Id, Verdict> {
    let mut verdicts = BTreeMap::new();
    for tier in Tier::ALL {
        let Some((hash, sections)) = documents.wanted(tier) else { continue };
        let asked: Vec<&Answer> = answers.iter().filter(|answer| answer.tier == tier).collect();
        if asked.is_empty() {
            continue;
        }
        for (text, id, section) in sections.iter().filter_map(|(text, section)| Some((text, id(text)?, section))) {
            let (delivery, message) = delivery(text, section.uid.as_deref(), tier, answers);
            let rollout = rollout(text, tier, &asked, documents);
            let document = hash.to_owned();
            verdicts.insert(id, Verdict { uid: section.uid.clone(), delivery, message, rollout, document });
        }
    }
    verdicts
}

/// The pipeline that a document calls so; none for what no resource stands for.
fn id(text: &str) -> Option<Id> {
    let (signal, name) = text.split_once('/')?;
    let signal = Signal::ALL.into_iter().find(|known| known.name() == signal)?;
    (text != FORWARD).then(|| Id { signal, name: name.to_owned() })
}

/// How it delivers, and in words.
fn delivery(id: &str, uid: Option<&str>, tier: Tier, answers: &[Answer]) -> (Delivery, String) {
    let own: Vec<&PipelineReport> = reports(id, answers).filter(|report| report.is_of(uid)).collect();
    let Some(worst) = own.iter().copied().max_by_key(|report| report.diagnosis) else {
        return (Delivery::Unknown, "no collector says how it is".to_owned());
    };
    // What went with a document that is not in force any more was lost all the same, be it on the way to collectors that are gone.
    if worst.diagnosis < Diagnosis::DataDropped
        && let Some(drop) = ended(answers).find_map(|ended| ended.lost_lately(uid))
    {
        return (Delivery::DataDropped, why_lost(Some(drop), BACKEND));
    }
    // Trouble with the backend is said first: it may well be the cause of what is before it.
    if tier == Tier::Sticky && worst.diagnosis < Diagnosis::BackendSlow {
        let forward = reports(FORWARD, answers).max_by_key(|report| report.diagnosis);
        if let Some(said) = forward.and_then(on_the_way) {
            return said;
        }
    }
    if own.iter().all(|report| report.diagnosis == Diagnosis::NoData || report.sends_nothing())
        && worst.diagnosis == Diagnosis::Delivering
    {
        let words = "nothing is left to send of what came in: filters and sampling dropped it, or have yet to decide";
        return (Delivery::NoData, words.to_owned());
    }
    let (delivery, words) = in_words(worst);
    let everywhere = delivery.is_well() || own.iter().all(|report| report.diagnosis == worst.diagnosis);
    (delivery, if everywhere { words } else { format!("at some of the collectors, {words}") })
}

/// What the collectors say of pipelines that their document does not have any more.
fn ended(answers: &[Answer]) -> impl Iterator<Item = &EndedReport> {
    answers.iter().filter_map(|answer| answer.report.as_ref()).flat_map(|report| &report.ended)
}

/// What the collectors that carry a pipeline say of it.
fn reports<'a>(id: &'a str, answers: &'a [Answer]) -> impl Iterator<Item = &'a PipelineReport> {
    let reports = answers.iter().filter_map(|answer| answer.report.as_ref());
    reports.filter_map(move |report| report.pipelines.get(id))
}

/// What the way from the gateway to the collectors behind it means to whoever depends on it. That is no backend of theirs, and so they are told of none.
fn on_the_way(forward: &PipelineReport) -> Option<(Delivery, String)> {
    let said = match forward.diagnosis {
        Diagnosis::Unknown | Diagnosis::NoData | Diagnosis::Delivering => return None,
        Diagnosis::DataDropped => (Delivery::DataDropped, format!("{}, between the collectors", lost(forward, BEHIND))),
        Diagnosis::BufferFilling | Diagnosis::BackendSlow => {
            (Delivery::BufferFilling, "collectors that keep whole traces do not follow".to_owned())
        }
        Diagnosis::BackendUnreachable | Diagnosis::BackendRefuses => (
            Delivery::BufferFilling,
            "collectors that keep whole traces cannot be reached by those that receive".to_owned(),
        ),
    };
    Some(said)
}

fn in_words(report: &PipelineReport) -> (Delivery, String) {
    let failing = report.exporters.values().find(|exporter| exporter.fails());
    match report.diagnosis {
        Diagnosis::Unknown => {
            (Delivery::Unknown, "the collectors say something that this version does not know".to_owned())
        }
        Diagnosis::NoData => (Delivery::NoData, "nothing came in lately".to_owned()),
        Diagnosis::Delivering => (Delivery::Delivering, "what comes in reaches the backend".to_owned()),
        Diagnosis::BufferFilling => (
            Delivery::BufferFilling,
            "what is held for the backend takes 80 % of the room, or memory was too short for what came".to_owned(),
        ),
        Diagnosis::BackendSlow => {
            let code = failing.map(code).unwrap_or_default();
            (
                Delivery::BackendSlow,
                format!("the backend takes less than comes in{code}, and more collectors would not help"),
            )
        }
        Diagnosis::DataDropped => (Delivery::DataDropped, lost(report, BACKEND)),
        Diagnosis::BackendUnreachable => (Delivery::BackendUnreachable, unreachable(failing)),
        Diagnosis::BackendRefuses => (Delivery::BackendRefuses, refuses(failing)),
    }
}

/// A loss for which no queue is large enough: the backend took a request and not all that was in it. Its reason is in the collectors' logs. `kubewake check` proposes to
/// look there; to one of another version, which may not know these words, it is a loss as any other.
pub const REJECTED: &str = "the backend rejected a part of it";

/// What is said of who refused for good, and of who rejected a part.
type Takers = [&'static str; 2];
const BACKEND: Takers = ["the backend refused it for good", REJECTED];
const BEHIND: Takers = ["the collectors behind refused it for good", "the collectors behind rejected a part of it"];

fn lost(report: &PipelineReport, takers: Takers) -> String {
    why_lost(report.last_drop.as_ref(), takers)
}

fn why_lost(drop: Option<&Loss>, [refused, rejected]: Takers) -> String {
    let why = match drop.map(|drop| drop.reason.as_str()) {
        Some("queue_full") => "the queue was full",
        Some("memory_limit") => "memory was short",
        Some("refused") => refused,
        Some("rejected") => rejected,
        Some("retries_exhausted") => "retries did not help for too long",
        Some("shutdown") => "a collector ended before it could deliver",
        _ => "a collector had to",
    };
    format!("data was dropped lately: {why}")
}

fn unreachable(exporter: Option<&ExporterReport>) -> String {
    let Some(exporter) = exporter else { return "the backend cannot be reached".to_owned() };
    if let Some(words) = distrust(exporter).or_else(|| unconnected(exporter)) {
        return words.to_owned();
    }
    let code = code(exporter);
    match exporter.last_error.as_str() {
        "connection" => format!(
            "no connection to the backend{code}: check the endpoint, its name, its certificates, and what the network allows"
        ),
        "timeout" => format!(
            "request to the backend timed out{code}: check whether a firewall or a NetworkPolicy drops packets, and whether the backend is overloaded"
        ),
        "throttled" => format!("the backend says that it is not there for now{code}"),
        _ => format!("the backend cannot be reached{code}"),
    }
}

fn refuses(exporter: Option<&ExporterReport>) -> String {
    let Some(exporter) = exporter else { return "the backend refuses what is sent".to_owned() };
    if let Some(words) = distrust(exporter) {
        return words.to_owned();
    }
    let code = code(exporter);
    match exporter.last_error.as_str() {
        "authentication" => format!("the backend refuses the credentials{code}: check authentication and headers"),
        "protocol" => format!("what answers does not speak OTLP{code}: check endpoint, protocol and path"),
        _ => format!("the backend refuses what is sent{code}: check endpoint, protocol and path"),
    }
}

/// Why there is no connection, where the collector knows.
fn unconnected(exporter: &ExporterReport) -> Option<&'static str> {
    let words = match exporter.last_error_code.as_deref()?.strip_prefix("connect:")? {
        "refused" => {
            "failed to connect to the backend: connection refused: check the port of the endpoint, and whether the backend runs"
        }
        "name_not_found" => {
            "failed to connect to the backend: host name not found: check the host name of the endpoint, with its namespace for a Service"
        }
        "dns_failed" => {
            "failed to connect to the backend: no DNS server answered for its host name: check the cluster's DNS, and whether a NetworkPolicy lets collectors reach it"
        }
        "timeout" => {
            "failed to connect to the backend: connection timed out: check the address of the endpoint, and whether a firewall or a NetworkPolicy drops packets"
        }
        "unreachable" => {
            "failed to connect to the backend: no route to host: check the address of the endpoint, and the routes of the nodes"
        }
        _ => return None,
    };
    Some(words)
}

/// What is wrong with TLS, where a connection failed because of it.
fn distrust(exporter: &ExporterReport) -> Option<&'static str> {
    let words = match exporter.last_error_code.as_deref()?.strip_prefix("tls:")? {
        "unknown_authority" => {
            "the backend's certificate is of an authority that is not known: set `spec.output.otlp.tls.ca` to that authority's certificate"
        }
        "expired" => "the backend's certificate has expired, or is not valid yet: it must be renewed there",
        "wrong_name" => {
            "the backend's certificate is for another name: use that name in the endpoint, or set `spec.output.otlp.tls.serverNameOverride` to it"
        }
        "invalid_certificate" => "the backend's certificate cannot be used",
        "refused" => {
            "the backend ends the TLS handshake: check `spec.output.otlp.tls.cert` and `spec.output.otlp.tls.key`, and whether it wants them"
        }
        "certificate_wanted" => {
            "the backend asks for a client certificate: set `spec.output.otlp.tls.cert` and `spec.output.otlp.tls.key`"
        }
        "no_tls" => {
            "the backend does not speak TLS on this port: use http:// or `spec.output.otlp.tls.insecure`, or the port where it does"
        }
        "perhaps_no_tls" => {
            "the backend ends connections when TLS begins, as one does that does not speak it: if so, use http:// or `spec.output.otlp.tls.insecure`; if not, look what is in between"
        }
        "wanted" => {
            "the backend expects TLS, and the endpoint has none: use https:// instead of http://, and no `spec.output.otlp.tls.insecure`"
        }
        "perhaps_wanted" => {
            "the backend ends connections without a word, as one does that expects TLS: if it does, use https:// instead of http://, and no `spec.output.otlp.tls.insecure`; if not, look what is in between"
        }
        _ => "no connection to the backend: the TLS handshake fails",
    };
    Some(words)
}

/// What the backend answered, ` (grpc:16)`. Nothing else that a collector might say passes.
fn code(exporter: &ExporterReport) -> String {
    let is_code = |code: &&String| {
        let number = code.strip_prefix("grpc:").or_else(|| code.strip_prefix("http:"));
        number.is_some_and(|number| number.parse::<u16>().is_ok())
    };
    exporter.last_error_code.as_ref().filter(is_code).map(|code| format!(" ({code})")).unwrap_or_default()
}

/// Whether what the document says of a pipeline is in force everywhere.
fn rollout(id: &str, tier: Tier, asked: &[&Answer], documents: &Documents) -> Rollout {
    let Some((hash, sections)) = documents.wanted(tier) else { return Rollout::Unknown };
    // One that has none yet takes no data either.
    let reports = asked.iter().filter_map(|answer| answer.report.as_ref()).filter(|report| report.revision.is_some());
    let does = |report: &&Report| {
        let read = report.revision.as_ref().map(|revision| revision.hash.as_str()).unwrap_or_default();
        let says = documents.sections(read).and_then(|read| read.get(id));
        let is_same = read == hash || says.is_some() && says == sections.get(id);
        is_same || is_taken_to_do(report, id, (hash, sections), documents)
    };
    let (doing, behind): (Vec<&Report>, Vec<&Report>) = reports.partition(does);
    let refusals = behind.iter().filter_map(|report| report.refused.as_ref()).filter(|refused| refused.hash == hash);
    let reasons: BTreeSet<&str> = refusals.flat_map(|refused| &refused.reasons).map(String::as_str).collect();
    if !reasons.is_empty() {
        let its = reasons.iter().find(|reason| is_about(reason, id)).or_else(|| reasons.first());
        let why: String =
            its.into_iter().flat_map(|why| why.chars()).filter(|c| !c.is_control()).take(MAX_REASON).collect();
        let words = format!("collectors refuse the document, and the one before goes on: {why}");
        return Rollout::Incomplete(Reason::DocumentRefused, words);
    }
    let total = doing.len() + behind.len();
    match (total, behind.len()) {
        (0, _) => Rollout::Unknown,
        (_, 0) => Rollout::InForce,
        (_, waiting) => {
            let words = format!("{waiting} of {total} collectors have not read the new document yet");
            Rollout::Incomplete(Reason::RolloutInProgress, words)
        }
    }
}

/// Whether a collector carries a pipeline, nobody knows by which document, and refuses the new one for the sake of others: that is not held against this one.
fn is_taken_to_do(report: &Report, id: &str, (hash, sections): (&str, &Sections), documents: &Documents) -> bool {
    let is_known = report.revision.as_ref().is_some_and(|read| documents.sections(&read.hash).is_some());
    let Some(refused) = report.refused.as_ref().filter(|refused| refused.hash == hash) else { return false };
    let names = |id: &str| refused.reasons.iter().any(|reason| is_about(reason, id));
    let uid = sections.get(id).and_then(|section| section.uid.as_deref());
    let carries = report.pipelines.get(id).is_some_and(|carried| carried.is_of(uid));
    !is_known && carries && !names(id) && sections.keys().any(|other| names(other))
}

/// Whether a refusal names a pipeline or one of its components, whose ids end with `/traces-backend`.
fn is_about(reason: &str, id: &str) -> bool {
    let component = format!("/{}", id.replacen('/', "-", 1));
    let mut words = reason.split(|c: char| c.is_whitespace() || matches!(c, ':' | ',' | '"' | '`' | '\''));
    words.any(|word| word == id || word.ends_with(&component))
}
