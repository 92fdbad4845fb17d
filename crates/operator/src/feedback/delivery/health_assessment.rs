//! The delivery health of each pipeline, from the reports of all collectors. Pure.
//!
//! A pipeline is as healthy as at its worst collector, since what that one holds is somebody's data. A
//! pipeline that waits for whole traces also depends on forwarding from the gateway to the sticky tier. A
//! document is in force for a pipeline when every collector that answers treats the pipeline as that document
//! does, even if it has read another one. Reports of a deleted pipeline with the same name are ignored.

use std::collections::{BTreeMap, BTreeSet};

use kubewake_api::{ConditionReason, DeliveryOutcome, Signal};
use kubewake_status::{
    CollectorStatus, DropReport, EndedPipelineReport, ExporterReport, PipelineDiagnosis, PipelineReport,
};

use super::{
    document_history::{DocumentHistory, SectionsById},
    log_lag,
};
use crate::{
    feedback::delivery_health::{DeliveryHealth, RolloutState},
    model::{names::CollectorTier, pipeline_key::PipelineKey},
};

#[cfg(test)]
mod tests;

/// The pipeline that forwards from the gateway to the sticky tier.
const FORWARD_PIPELINE: &str = "traces/_sticky";
/// The limit of a collector's reason for refusing a document.
const MAX_REASON_CHARS: usize = 500;

/// The tier of one collector, and its report if it answered.
#[derive(Clone, Debug)]
pub struct CollectorAnswer {
    pub tier: CollectorTier,
    /// The node that it runs on.
    pub node: Option<String>,
    pub report: Option<CollectorStatus>,
}

/// The health of every pipeline that is part of a document; empty where there are no collectors.
pub fn assess_delivery(
    answers: &[CollectorAnswer],
    documents: &DocumentHistory,
) -> BTreeMap<PipelineKey, DeliveryHealth> {
    let mut verdicts = BTreeMap::<PipelineKey, DeliveryHealth>::new();
    for tier in CollectorTier::ALL {
        let Some((hash, sections)) = documents.wanted(tier) else { continue };
        let asked: Vec<&CollectorAnswer> = answers.iter().filter(|answer| answer.tier == tier).collect();
        if asked.is_empty() {
            continue;
        }
        for (text, id, section) in
            sections.iter().filter_map(|(text, section)| Some((text, parse_pipeline_key(text)?, section)))
        {
            let (delivery, message) = delivery_outcome(text, section.uid.as_deref(), tier, answers);
            let message = match log_lag::describe(text, answers) {
                Some(lag) => format!("{message}; {lag}"),
                None => message,
            };
            let rollout = rollout_state(text, tier, &asked, documents);
            let documents = BTreeSet::from([hash.to_owned()]);
            let health = DeliveryHealth { uid: section.uid.clone(), delivery, message, rollout, documents };
            let health = match verdicts.remove(&id) {
                Some(before) => health.with_tier(before),
                None => health,
            };
            verdicts.insert(id, health);
        }
    }
    verdicts
}

/// The pipeline with this id in documents; `None` for pipelines that the operator adds, which have no
/// resource.
fn parse_pipeline_key(text: &str) -> Option<PipelineKey> {
    let (signal, name) = text.split_once('/')?;
    let signal = Signal::ALL.into_iter().find(|known| known.name() == signal)?;
    (text != FORWARD_PIPELINE).then(|| PipelineKey { signal, name: name.to_owned() })
}

/// How a pipeline delivers, and the message for its status.
fn delivery_outcome(
    id: &str,
    uid: Option<&str>,
    tier: CollectorTier,
    answers: &[CollectorAnswer],
) -> (DeliveryOutcome, String) {
    let own: Vec<&PipelineReport> = pipeline_reports(id, answers).filter(|report| report.matches_uid(uid)).collect();
    let Some(worst) = own.iter().copied().max_by_key(|report| report.diagnosis) else {
        return (DeliveryOutcome::Unknown, "no collector reports the health of the pipeline".to_owned());
    };
    // Data that an earlier document carried was lost all the same, even on the way to collectors that are
    // gone.
    if worst.diagnosis < PipelineDiagnosis::DataDropped
        && let Some(drop) = ended_reports(answers).find_map(|ended| ended.recent_drop(uid))
    {
        return (DeliveryOutcome::DataDropped, loss_reason(Some(drop), BACKEND_LOSS_REASONS));
    }
    // Trouble with the backend is reported first: it may be the cause of trouble in forwarding.
    if tier == CollectorTier::Sticky && worst.diagnosis < PipelineDiagnosis::BackendSlow {
        let forward = pipeline_reports(FORWARD_PIPELINE, answers).max_by_key(|report| report.diagnosis);
        if let Some(said) = forward.and_then(forwarding_outcome) {
            return said;
        }
    }
    if own.iter().all(|report| report.diagnosis == PipelineDiagnosis::NoData || report.sends_nothing())
        && worst.diagnosis == PipelineDiagnosis::Delivering
    {
        let words =
            "no data left to send: filters and sampling dropped all received data, or sampling has not decided yet";
        return (DeliveryOutcome::NoData, words.to_owned());
    }
    let (delivery, words) = pipeline_outcome(worst);
    let everywhere = delivery.is_healthy() || own.iter().all(|report| report.diagnosis == worst.diagnosis);
    (delivery, if everywhere { words } else { format!("on some of the collectors: {words}") })
}

/// Reports on pipelines that the collectors' document no longer has.
fn ended_reports(answers: &[CollectorAnswer]) -> impl Iterator<Item = &EndedPipelineReport> {
    answers.iter().filter_map(|answer| answer.report.as_ref()).flat_map(|report| &report.ended)
}

/// The reports on a pipeline from the collectors that carry it.
fn pipeline_reports<'a>(id: &'a str, answers: &'a [CollectorAnswer]) -> impl Iterator<Item = &'a PipelineReport> {
    let reports = answers.iter().filter_map(|answer| answer.report.as_ref());
    reports.filter_map(move |report| report.pipelines.get(id))
}

/// What trouble in forwarding means for pipelines of the sticky tier. The forwarding pipeline's backend is
/// not theirs, so the message mentions none.
fn forwarding_outcome(forward: &PipelineReport) -> Option<(DeliveryOutcome, String)> {
    let said = match forward.diagnosis {
        PipelineDiagnosis::Unknown | PipelineDiagnosis::NoData | PipelineDiagnosis::Delivering => return None,
        PipelineDiagnosis::DataDropped => (
            DeliveryOutcome::DataDropped,
            format!("{}, between the gateway and the sticky tier", loss_message(forward, STICKY_LOSS_REASONS)),
        ),
        PipelineDiagnosis::BufferFilling | PipelineDiagnosis::BackendSlow => {
            (DeliveryOutcome::BufferFilling, "the sticky tier accepts less data than the gateway sends".to_owned())
        }
        PipelineDiagnosis::BackendUnreachable | PipelineDiagnosis::BackendRefuses => {
            (DeliveryOutcome::BufferFilling, "the gateway cannot reach the sticky tier".to_owned())
        }
    };
    Some(said)
}

fn pipeline_outcome(report: &PipelineReport) -> (DeliveryOutcome, String) {
    let failing = report.exporters.values().find(|exporter| exporter.is_failing());
    match report.diagnosis {
        PipelineDiagnosis::Unknown => (
            DeliveryOutcome::Unknown,
            "the collectors report a diagnosis that this version of the operator does not know".to_owned(),
        ),
        PipelineDiagnosis::NoData => (DeliveryOutcome::NoData, "no data was received lately".to_owned()),
        PipelineDiagnosis::Delivering => (DeliveryOutcome::Delivering, "received data reaches the backend".to_owned()),
        PipelineDiagnosis::BufferFilling => (
            DeliveryOutcome::BufferFilling,
            "the queue for the backend is 80 % full, or memory was too short for incoming data".to_owned(),
        ),
        PipelineDiagnosis::BackendSlow => {
            let code = failing.map(code_suffix).unwrap_or_default();
            (
                DeliveryOutcome::BackendSlow,
                format!(
                    "the backend accepts less data than the collectors receive{code}, and more collectors would not help"
                ),
            )
        }
        PipelineDiagnosis::DataDropped => (DeliveryOutcome::DataDropped, loss_message(report, BACKEND_LOSS_REASONS)),
        PipelineDiagnosis::BackendUnreachable => (DeliveryOutcome::BackendUnreachable, unreachable_message(failing)),
        PipelineDiagnosis::BackendRefuses => (DeliveryOutcome::BackendRefuses, refusal_message(failing)),
    }
}

/// The message of a loss that no larger queue would prevent: the backend accepted a request but rejected a
/// part of it. The reason is in the collectors' logs, where `kubewake check` refers to. Another version of
/// it, which may not know this message, treats it as any other loss.
pub const PARTIAL_REJECTION_MESSAGE: &str = "the backend rejected a part of the data";

/// The messages for a request that was refused for good, and for one that was rejected in part.
type LossReasons = [&'static str; 2];
const BACKEND_LOSS_REASONS: LossReasons = ["the backend refused the data permanently", PARTIAL_REJECTION_MESSAGE];
const STICKY_LOSS_REASONS: LossReasons =
    ["the sticky tier refused the data permanently", "the sticky tier rejected a part of the data"];

fn loss_message(report: &PipelineReport, takers: LossReasons) -> String {
    loss_reason(report.last_drop.as_ref(), takers)
}

fn loss_reason(drop: Option<&DropReport>, [refused, rejected]: LossReasons) -> String {
    let why = match drop.map(|drop| drop.reason.as_str()) {
        Some("queue_full") => "the queue was full",
        Some("memory_limit") => "memory was too short",
        Some("refused") => refused,
        Some("rejected") => rejected,
        Some("retries_exhausted") => "retries failed for too long",
        Some("shutdown") => "a collector terminated before it delivered all data",
        _ => "the collectors report no known reason",
    };
    format!("data was dropped lately: {why}")
}

fn unreachable_message(exporter: Option<&ExporterReport>) -> String {
    let Some(exporter) = exporter else { return "the backend cannot be reached".to_owned() };
    if let Some(words) = tls_failure(exporter).or_else(|| connection_failure(exporter)) {
        return words.to_owned();
    }
    let code = code_suffix(exporter);
    match exporter.last_error.as_str() {
        "connection" => format!(
            "failed to connect to the backend{code}: check the endpoint, its host name, its certificates, and whether a firewall or a NetworkPolicy blocks the connection"
        ),
        "timeout" => format!(
            "request to the backend timed out{code}: check whether a firewall or a NetworkPolicy drops packets, and whether the backend is overloaded"
        ),
        "throttled" => format!("the backend reports that it is temporarily unavailable{code}"),
        _ => format!("the backend cannot be reached{code}"),
    }
}

fn refusal_message(exporter: Option<&ExporterReport>) -> String {
    let Some(exporter) = exporter else { return "the backend refuses requests".to_owned() };
    if let Some(words) = tls_failure(exporter) {
        return words.to_owned();
    }
    let code = code_suffix(exporter);
    match exporter.last_error.as_str() {
        "authentication" => format!("the backend refuses the credentials{code}: check authentication and headers"),
        "protocol" => {
            format!("the server at the endpoint does not speak OTLP{code}: check endpoint, protocol and path")
        }
        _ => format!("the backend refuses requests{code}: check endpoint, protocol and path"),
    }
}

/// Why there is no connection, if the collector knows.
fn connection_failure(exporter: &ExporterReport) -> Option<&'static str> {
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

/// What is wrong with TLS, if the connection failed because of it.
fn tls_failure(exporter: &ExporterReport) -> Option<&'static str> {
    let words = match exporter.last_error_code.as_deref()?.strip_prefix("tls:")? {
        "unknown_authority" => {
            "the backend's certificate is signed by an unknown authority: set `spec.output.otlp.tls.ca` to the certificate of that authority"
        }
        "expired" => "the backend's certificate has expired, or is not valid yet: renew it at the backend",
        "wrong_name" => {
            "the backend's certificate is for another name: use that name in the endpoint, or set `spec.output.otlp.tls.serverNameOverride` to it"
        }
        "invalid_certificate" => "the backend's certificate is invalid",
        "refused" => {
            "the backend ends the TLS handshake: check `spec.output.otlp.tls.cert` and `spec.output.otlp.tls.key`, and whether the backend requires them"
        }
        "certificate_wanted" => {
            "the backend asks for a client certificate: set `spec.output.otlp.tls.cert` and `spec.output.otlp.tls.key`"
        }
        "no_tls" => {
            "the backend does not speak TLS on this port: use http:// or `spec.output.otlp.tls.insecure`, or the port that expects TLS"
        }
        "perhaps_no_tls" => {
            "the backend closes the connection at the start of the TLS handshake, and may not speak TLS on this port: if so, use http:// or `spec.output.otlp.tls.insecure`; if not, check proxies and firewalls on the way"
        }
        "wanted" => {
            "the backend expects TLS, and TLS is off: use https:// instead of http://, and remove `spec.output.otlp.tls.insecure`"
        }
        "perhaps_wanted" => {
            "the backend closes the connection without an answer, and may expect TLS: if so, use https:// instead of http://, and remove `spec.output.otlp.tls.insecure`; if not, check proxies and firewalls on the way"
        }
        _ => "failed to connect to the backend: TLS handshake failed",
    };
    Some(words)
}

/// The code of the backend's answer, as ` (grpc:16)`. Any other text of a collector is left out.
fn code_suffix(exporter: &ExporterReport) -> String {
    let is_code = |code: &&String| {
        let number = code.strip_prefix("grpc:").or_else(|| code.strip_prefix("http:"));
        number.is_some_and(|number| number.parse::<u16>().is_ok())
    };
    exporter.last_error_code.as_ref().filter(is_code).map(|code| format!(" ({code})")).unwrap_or_default()
}

/// Whether the section of a pipeline is in force at all collectors.
fn rollout_state(
    id: &str,
    tier: CollectorTier,
    asked: &[&CollectorAnswer],
    documents: &DocumentHistory,
) -> RolloutState {
    let Some((hash, sections)) = documents.wanted(tier) else { return RolloutState::Unknown };
    // A collector that has read no document yet takes no data either.
    let reports = asked.iter().filter_map(|answer| answer.report.as_ref()).filter(|report| report.revision.is_some());
    let does = |report: &&CollectorStatus| {
        let read = report.revision.as_ref().map(|revision| revision.hash.as_str()).unwrap_or_default();
        let says = documents.sections_of_hash(read).and_then(|read| read.get(id));
        let is_same = read == hash || says.is_some() && says == sections.get(id);
        is_same || is_assumed_in_force(report, id, (hash, sections), documents)
    };
    let (doing, behind): (Vec<&CollectorStatus>, Vec<&CollectorStatus>) = reports.partition(does);
    let refusals = behind.iter().filter_map(|report| report.refused.as_ref()).filter(|refused| refused.hash == hash);
    let reasons: BTreeSet<&str> = refusals.flat_map(|refused| &refused.reasons).map(String::as_str).collect();
    if !reasons.is_empty() {
        let its = reasons.iter().find(|reason| is_about(reason, id)).or_else(|| reasons.first());
        let why: String =
            its.into_iter().flat_map(|why| why.chars()).filter(|c| !c.is_control()).take(MAX_REASON_CHARS).collect();
        let words = format!("the collectors rejected the new configuration and keep the previous one: {why}");
        return RolloutState::Incomplete(ConditionReason::DocumentRefused, words);
    }
    let total = doing.len() + behind.len();
    match (total, behind.len()) {
        (0, _) => RolloutState::Unknown,
        (_, 0) => RolloutState::InForce,
        (_, waiting) => {
            let words = format!("{waiting} of {total} collectors have not loaded the new configuration yet");
            RolloutState::Incomplete(ConditionReason::RolloutInProgress, words)
        }
    }
}

/// Whether a collector carries the pipeline by an unknown document and refused the new one because of other
/// pipelines. That does not count against this one.
fn is_assumed_in_force(
    report: &CollectorStatus,
    id: &str,
    (hash, sections): (&str, &SectionsById),
    documents: &DocumentHistory,
) -> bool {
    let is_known = report.revision.as_ref().is_some_and(|read| documents.sections_of_hash(&read.hash).is_some());
    let Some(refused) = report.refused.as_ref().filter(|refused| refused.hash == hash) else { return false };
    let names = |id: &str| refused.reasons.iter().any(|reason| is_about(reason, id));
    let uid = sections.get(id).and_then(|section| section.uid.as_deref());
    let carries = report.pipelines.get(id).is_some_and(|carried| carried.matches_uid(uid));
    !is_known && carries && !names(id) && sections.keys().any(|other| names(other))
}

/// Whether a refusal names a pipeline or one of its components, whose ids end with `/traces-backend`.
fn is_about(reason: &str, id: &str) -> bool {
    let component = format!("/{}", id.replacen('/', "-", 1));
    let mut words = reason.split(|c: char| c.is_whitespace() || matches!(c, ':' | ',' | '"' | '`' | '\''));
    words.any(|word| word == id || word.ends_with(&component))
}
