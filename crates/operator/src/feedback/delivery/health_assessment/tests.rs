use kubewake_config::fingerprint;
use serde_json::{Value, json};

use super::*;

const GATEWAY: &str = "
exporters: {otlp_grpc/traces-backend: {endpoint: a}, otlp_grpc/logs-backend: {endpoint: b}, load_balancing/sticky: {}}
service:
  pipelines:
    traces/backend: {exporters: [otlp_grpc/traces-backend]}
    logs/backend: {exporters: [otlp_grpc/logs-backend]}
    traces/_sticky: {exporters: [load_balancing/sticky]}
";
const STICKY: &str = "service: {pipelines: {traces/whole: {}}}";

fn documents() -> DocumentHistory {
    let mut documents = DocumentHistory::default();
    documents.set_desired(CollectorTier::Gateway, Some(GATEWAY));
    documents.set_desired(CollectorTier::Sticky, Some(STICKY));
    documents
}

fn traces(name: &str) -> PipelineKey {
    PipelineKey { signal: Signal::Traces, name: name.to_owned() }
}

fn answer(tier: CollectorTier, document: &str, pipelines: Value) -> CollectorAnswer {
    let report = json!({"revision": {"hash": fingerprint(document)}, "pipelines": pipelines});
    CollectorAnswer { tier, node: None, report: Some(serde_json::from_value(report).unwrap()) }
}

fn pipeline(diagnosis: &str) -> Value {
    json!({"diagnosis": diagnosis})
}

fn failing(diagnosis: &str, error: &str, code: Option<&str>) -> Value {
    let ok = json!({"state": "ok", "last_error": "timeout", "last_error_code": "grpc:4"});
    let bad = json!({"state": "retrying", "last_error": error, "last_error_code": code});
    json!({"diagnosis": diagnosis, "exporters": {"a": ok, "b": bad}})
}

/// The outcome for `traces/backend` if the gateway's collectors report these pipelines.
fn said(pipelines: &[Value]) -> (DeliveryOutcome, String) {
    let answers: Vec<CollectorAnswer> =
        pipelines.iter().map(|it| answer(CollectorTier::Gateway, GATEWAY, json!({"traces/backend": it}))).collect();
    let verdict = assess_delivery(&answers, &documents()).remove(&traces("backend")).unwrap();
    assert_eq!(verdict.rollout, RolloutState::InForce);
    (verdict.delivery, verdict.message)
}

#[test]
fn pipeline_of_two_tiers_is_as_healthy_and_as_far_as_the_worse_of_them() {
    const AGENT: &str = "service: {pipelines: {logs/backend: {receivers: [file_log]}}}";
    let mut documents = documents();
    documents.set_desired(CollectorTier::Agent, Some(AGENT));
    let logs = PipelineKey { signal: Signal::Logs, name: "backend".to_owned() };
    let of = |gateway: &str, agent: &str, read: &str| {
        let answers = [
            answer(CollectorTier::Gateway, GATEWAY, json!({"logs/backend": pipeline(gateway)})),
            answer(CollectorTier::Agent, read, json!({"logs/backend": pipeline(agent)})),
        ];
        assess_delivery(&answers, &documents).remove(&logs).unwrap()
    };
    let well = of("NoData", "Delivering", AGENT);
    assert_eq!((well.delivery, &well.rollout), (DeliveryOutcome::Delivering, &RolloutState::InForce));
    assert_eq!(well.documents, BTreeSet::from([fingerprint(GATEWAY), fingerprint(AGENT)]));
    assert_eq!(of("BackendRefuses", "Delivering", AGENT).delivery, DeliveryOutcome::BackendRefuses);
    assert_eq!(of("Delivering", "BackendRefuses", AGENT).delivery, DeliveryOutcome::BackendRefuses);
    let behind = of("Delivering", "Delivering", "service: {pipelines: {}}");
    assert_eq!(behind.rollout.reason(), Some(ConditionReason::RolloutInProgress));
}

#[test]
fn every_diagnosis_is_a_verdict() {
    use DeliveryOutcome::*;
    let cases = [
        (pipeline("NoData"), NoData, "no data was received lately"),
        (pipeline("Delivering"), Delivering, "received data reaches the backend"),
        (
            pipeline("BufferFilling"),
            BufferFilling,
            "the queue for the backend is 80 % full, or memory was too short for incoming data",
        ),
        (
            pipeline("BackendSlow"),
            BackendSlow,
            "the backend accepts less data than the collectors receive, and more collectors would not help",
        ),
        (
            failing("BackendSlow", "throttled", Some("http:429")),
            BackendSlow,
            "the backend accepts less data than the collectors receive (http:429), and more collectors would not help",
        ),
        (
            json!({"diagnosis": "DataDropped", "last_drop": {"reason": "queue_full"}}),
            DataDropped,
            "data was dropped lately: the queue was full",
        ),
        (
            json!({"diagnosis": "DataDropped"}),
            DataDropped,
            "data was dropped lately: the collectors report no known reason",
        ),
        (
            failing("BackendUnreachable", "connection", None),
            BackendUnreachable,
            "failed to connect to the backend: check the endpoint, its host name, its certificates, and whether a firewall or a NetworkPolicy blocks the connection",
        ),
        (
            failing("BackendUnreachable", "connection", Some("connect:refused")),
            BackendUnreachable,
            "failed to connect to the backend: connection refused: check the port of the endpoint, and whether the backend runs",
        ),
        (
            failing("BackendUnreachable", "connection", Some("connect:hunter2")),
            BackendUnreachable,
            "failed to connect to the backend: check the endpoint, its host name, its certificates, and whether a firewall or a NetworkPolicy blocks the connection",
        ),
        (
            failing("BackendUnreachable", "timeout", None),
            BackendUnreachable,
            "request to the backend timed out: check whether a firewall or a NetworkPolicy drops packets, and whether the backend is overloaded",
        ),
        (
            failing("BackendUnreachable", "connection", Some("tls:unknown_authority")),
            BackendUnreachable,
            "the backend's certificate is signed by an unknown authority: set `spec.output.otlp.tls.ca` to the certificate of that authority",
        ),
        (
            failing("BackendUnreachable", "connection", Some("tls:wanted")),
            BackendUnreachable,
            "the backend expects TLS, and TLS is off: use https:// instead of http://, and remove `spec.output.otlp.tls.insecure`",
        ),
        (
            failing("BackendRefuses", "refused", Some("tls:wanted")),
            BackendRefuses,
            "the backend expects TLS, and TLS is off: use https:// instead of http://, and remove `spec.output.otlp.tls.insecure`",
        ),
        (
            failing("BackendUnreachable", "connection", Some("tls:no_tls")),
            BackendUnreachable,
            "the backend does not speak TLS on this port: use http:// or `spec.output.otlp.tls.insecure`, or the port that expects TLS",
        ),
        (
            failing("BackendUnreachable", "connection", Some("tls:certificate_wanted")),
            BackendUnreachable,
            "the backend asks for a client certificate: set `spec.output.otlp.tls.cert` and `spec.output.otlp.tls.key`",
        ),
        (
            failing("BackendUnreachable", "connection", Some("tls:hunter2")),
            BackendUnreachable,
            "failed to connect to the backend: TLS handshake failed",
        ),
        (
            failing("BackendUnreachable", "throttled", Some("grpc:14")),
            BackendUnreachable,
            "the backend reports that it is temporarily unavailable (grpc:14)",
        ),
        (
            failing("BackendRefuses", "authentication", Some("grpc:16")),
            BackendRefuses,
            "the backend refuses the credentials (grpc:16): check authentication and headers",
        ),
        (
            failing("BackendRefuses", "refused", Some("http:404")),
            BackendRefuses,
            "the backend refuses requests (http:404): check endpoint, protocol and path",
        ),
        (
            failing("BackendRefuses", "authentication", Some("hunter2")),
            BackendRefuses,
            "the backend refuses the credentials: check authentication and headers",
        ),
        (
            pipeline("Bored"),
            Unknown,
            "the collectors report a diagnosis that this version of the operator does not know",
        ),
        (json!({}), Unknown, "the collectors report a diagnosis that this version of the operator does not know"),
    ];
    for (report, delivery, words) in cases {
        assert_eq!(said(&[report]), (delivery, words.to_owned()));
    }
}

/// This crate does not depend on the collector, whose `TlsFault` and `ConnectFault` have these names.
#[test]
fn every_fault_of_a_connection_and_of_tls_has_words_of_its_own() {
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/../collector/src/core/code.rs");
    let source = std::fs::read_to_string(source).unwrap();
    let mut all = BTreeSet::from([said(&[failing("BackendUnreachable", "connection", None)]).1]);
    let mut count = all.len();
    for (type_, prefix, known) in
        [("TlsFault", "tls", ["perhaps_wanted", "other"]), ("ConnectFault", "connect", ["refused", "timeout"])]
    {
        let names = source.split(&format!("impl {type_} {{")).nth(1).unwrap().split("\n}").next().unwrap();
        let names: BTreeSet<&str> = names.split('"').skip(1).step_by(2).collect();
        assert!(known.iter().all(|known| names.contains(known)), "{names:?}");
        let code = |name: &&str| format!("{prefix}:{name}");
        all.extend(names.iter().map(|it| said(&[failing("BackendUnreachable", "connection", Some(&code(it)))]).1));
        count += names.len();
    }
    assert_eq!(all.len(), count, "{all:#?}");
}

#[test]
fn what_is_filtered_whole_is_not_delivered() {
    let with = |state: &str| json!({"diagnosis": "Delivering", "exporters": {"a": {"state": state}}});
    let (delivery, words) = said(&[with("idle"), pipeline("NoData")]);
    assert_eq!(delivery, DeliveryOutcome::NoData);
    assert!(words.contains("filters and sampling"), "{words}");
    assert_eq!(said(&[with("idle"), with("ok")]).0, DeliveryOutcome::Delivering, "another one sends");
    assert_eq!(said(&[pipeline("Delivering")]).0, DeliveryOutcome::Delivering, "an old one does not say");
}

#[test]
fn the_worst_counts() {
    let order =
        ["NoData", "Delivering", "BufferFilling", "BackendSlow", "DataDropped", "BackendUnreachable", "BackendRefuses"];
    for (i, worse) in order.iter().enumerate().skip(2) {
        for better in &order[..i] {
            let (delivery, words) = said(&[pipeline(better), pipeline(worse), pipeline(better)]);
            assert_eq!(delivery.reason().as_str(), *worse);
            assert!(words.starts_with("on some of the collectors: "), "{words}");
            assert!(!said(&[pipeline(worse), pipeline(worse)]).1.contains("some"), "it is so at all of them");
        }
    }
    assert_eq!(said(&[pipeline("NoData"), pipeline("Delivering")]).0, DeliveryOutcome::Delivering);
    assert!(!said(&[pipeline("NoData"), pipeline("Delivering")]).1.contains("some"), "senders need not send to all");
}

#[test]
fn who_does_not_answer_says_nothing() {
    let silent = CollectorAnswer { tier: CollectorTier::Gateway, node: None, report: None };
    let well = answer(CollectorTier::Gateway, GATEWAY, json!({"traces/backend": pipeline("Delivering")}));
    let verdicts = assess_delivery(&[silent.clone(), well], &documents());
    assert_eq!(verdicts[&traces("backend")].delivery, DeliveryOutcome::Delivering);
    let verdicts = assess_delivery(&[silent], &documents());
    assert_eq!(verdicts[&traces("backend")].delivery, DeliveryOutcome::Unknown);
    assert_eq!(verdicts[&traces("backend")].rollout, RolloutState::Unknown, "nobody said anything");
    assert!(!verdicts.contains_key(&traces("whole")), "there are no such collectors");
    assert!(!verdicts.contains_key(&traces("_sticky")), "and that is no pipeline");
    assert!(assess_delivery(&[], &documents()).is_empty());
}

#[test]
fn what_waits_for_whole_traces_depends_on_the_way_there() {
    let verdict = |way: Value, own: Value| {
        let answers = [
            answer(CollectorTier::Gateway, GATEWAY, json!({"traces/_sticky": way})),
            answer(CollectorTier::Sticky, STICKY, json!({"traces/whole": own})),
        ];
        assess_delivery(&answers, &documents()).remove(&traces("whole")).unwrap().delivery
    };
    let of = |way: &str, own: &str| verdict(pipeline(way), pipeline(own));
    assert_eq!(of("Delivering", "NoData"), DeliveryOutcome::NoData, "whole traces still wait");
    assert_eq!(of("NoData", "Delivering"), DeliveryOutcome::Delivering);
    assert_eq!(
        of("BackendUnreachable", "NoData"),
        DeliveryOutcome::BufferFilling,
        "it is no backend that is not there"
    );
    assert_eq!(of("BackendSlow", "Delivering"), DeliveryOutcome::BufferFilling);
    assert_eq!(of("DataDropped", "Delivering"), DeliveryOutcome::DataDropped);
    assert_eq!(of("DataDropped", "BackendSlow"), DeliveryOutcome::BackendSlow, "which is why");
    assert_eq!(of("DataDropped", "BackendRefuses"), DeliveryOutcome::BackendRefuses);
}

#[test]
fn what_is_lost_between_collectors_is_no_backends_fault() {
    for reason in ["refused", "rejected"] {
        let way = json!({"diagnosis": "DataDropped", "last_drop": {"reason": reason}});
        let answers = [
            answer(CollectorTier::Gateway, GATEWAY, json!({"traces/_sticky": way})),
            answer(CollectorTier::Sticky, STICKY, json!({"traces/whole": pipeline("Delivering")})),
        ];
        let words = assess_delivery(&answers, &documents()).remove(&traces("whole")).unwrap().message;
        assert!(words.contains("the sticky tier") && !words.contains("backend"), "{words}");
    }
}

/// The rollout of both pipelines of the gateway, if a collector has read `read` and refuses the desired
/// document for these reasons.
fn rollout_of(read: &str, refused: Option<(&str, &[&str])>) -> [RolloutState; 2] {
    let mut documents = DocumentHistory::default();
    documents.set_desired(CollectorTier::Gateway, Some(&GATEWAY.replace("endpoint: a", "endpoint: before")));
    documents.set_desired(CollectorTier::Gateway, Some(GATEWAY));
    let mut behind = answer(CollectorTier::Gateway, read, json!({}));
    let refused = refused.map(|(document, reasons)| json!({"hash": fingerprint(document), "reasons": reasons}));
    behind.report.as_mut().unwrap().refused = serde_json::from_value(refused.into()).unwrap();
    let mut verdicts = assess_delivery(&[answer(CollectorTier::Gateway, GATEWAY, json!({})), behind], &documents);
    let logs = PipelineKey { signal: Signal::Logs, name: "backend".to_owned() };
    [traces("backend"), logs].map(|id| verdicts.remove(&id).unwrap().rollout)
}

fn words_of(rollout: RolloutState) -> String {
    match rollout {
        RolloutState::Incomplete(_, words) => words,
        other => panic!("{other:?}"),
    }
}

#[test]
fn who_has_not_read_the_document_is_waited_for() {
    let before = GATEWAY.replace("endpoint: a", "endpoint: before");
    assert_eq!(rollout_of(GATEWAY, None), [RolloutState::InForce, RolloutState::InForce]);
    let words = "1 of 2 collectors have not loaded the new configuration yet".to_owned();
    let waits = RolloutState::Incomplete(ConditionReason::RolloutInProgress, words);
    assert_eq!(rollout_of(&before, None), [waits.clone(), RolloutState::InForce], "what did not change is in force");
    assert_eq!(rollout_of("unheard of", None), [waits.clone(), waits.clone()]);
    assert_eq!(rollout_of(&before, Some((&before, &["no"]))), [waits, RolloutState::InForce], "it refused another one");
}

#[test]
fn a_refused_document_is_told_to_whom_it_concerns() {
    let before = GATEWAY.replace("endpoint: a", "endpoint: before");
    let reasons: &[&str] = &[
        "line 3: exporters::otlp_grpc/logs-backend::tls: no",
        "line 9: exporters::otlp_grpc/traces-backend::endpoint: bad",
    ];
    let words = "the collectors rejected the new configuration and keep the previous one: line 9: exporters::otlp_grpc/traces-backend::endpoint: bad";
    assert_eq!(
        rollout_of(&before, Some((GATEWAY, reasons))),
        [RolloutState::Incomplete(ConditionReason::DocumentRefused, words.to_owned()), RolloutState::InForce]
    );
    let [traces, _] = rollout_of(&before, Some((GATEWAY, &["cannot listen"])));
    assert!(words_of(traces).ends_with(": cannot listen"), "nobody is to blame");
    let long = "x\n".repeat(10_000);
    let [traces, _] = rollout_of(&before, Some((GATEWAY, &[&long])));
    let words = words_of(traces);
    assert!(words.len() < 1000 && !words.contains('\n'), "{words}");
}

#[test]
fn who_goes_by_a_document_from_before_is_not_told_what_others_did() {
    let reason: &[&str] = &["line 9: exporters::otlp_grpc/traces-backend::endpoint: bad"];
    let rollouts = |carried: Value, reasons: &[&str]| {
        let mut answer = answer(CollectorTier::Gateway, "of another operator", carried);
        let refused = json!({"hash": fingerprint(GATEWAY), "reasons": reasons});
        answer.report.as_mut().unwrap().refused = serde_json::from_value(refused).unwrap();
        let mut verdicts = assess_delivery(&[answer], &documents());
        let logs = PipelineKey { signal: Signal::Logs, name: "backend".to_owned() };
        [traces("backend"), logs].map(|id| verdicts.remove(&id).unwrap().rollout.reason())
    };
    let both = json!({"traces/backend": pipeline("Delivering"), "logs/backend": pipeline("Delivering")});
    let refused = Some(ConditionReason::DocumentRefused);
    assert_eq!(rollouts(both.clone(), reason), [refused, None]);
    assert_eq!(rollouts(json!({}), reason), [refused, refused], "it is not carried at all");
    assert_eq!(rollouts(both, &["cannot listen"]), [refused, refused], "nobody is to blame");
}

#[test]
fn a_refusal_names_a_pipeline_by_its_components() {
    assert!(is_about("line 1: service::pipelines::traces/a: no", "traces/a"));
    assert!(is_about("exporter `otlp_grpc/traces-a`: no", "traces/a"));
    assert!(!is_about("exporter `otlp_grpc/traces-ab`: no", "traces/a"));
    assert!(!is_about("exporter otlp_grpc/traces-b-traces-a: no", "traces/a"));
}

#[test]
fn a_pipeline_is_not_judged_by_one_that_had_its_name_before() {
    let with =
        |uid: &str| GATEWAY.replace("[otlp_grpc/traces-backend]", &format!("[otlp_grpc/traces-backend], uid: {uid}"));
    let mut documents = DocumentHistory::default();
    documents.set_desired(CollectorTier::Gateway, Some(&with("one")));
    documents.set_desired(CollectorTier::Gateway, Some(&with("two")));
    let says = |document: &str, uid: Option<&str>, diagnosis: &str| {
        answer(CollectorTier::Gateway, document, json!({"traces/backend": {"diagnosis": diagnosis, "uid": uid}}))
    };
    let verdict =
        |answers: &[CollectorAnswer]| assess_delivery(answers, &documents).remove(&traces("backend")).unwrap();
    let before = says(&with("one"), Some("one"), "DataDropped");
    let alone = verdict(std::slice::from_ref(&before));
    assert_eq!((alone.delivery, alone.uid.as_deref()), (DeliveryOutcome::Unknown, Some("two")));
    assert_eq!(alone.rollout.reason(), Some(ConditionReason::RolloutInProgress));
    let both = verdict(&[before, says(&with("two"), Some("two"), "Delivering")]);
    assert_eq!(both.delivery, DeliveryOutcome::Delivering, "who is behind speaks of another");
    let old = verdict(&[says(&with("two"), None, "DataDropped")]);
    assert_eq!(old.delivery, DeliveryOutcome::DataDropped, "an old collector does not say of whom it speaks");
}

#[test]
fn loss_of_a_pipeline_that_left_the_document_is_said_of_whom_it_concerns() {
    let mut documents = DocumentHistory::default();
    let text = "service: {pipelines: {traces/one: {uid: a}, traces/two: {uid: b}}}";
    documents.set_desired(CollectorTier::Gateway, Some(text));
    let said = |ended: Value, diagnosis: &str| {
        let pipelines = json!({"traces/one": {"uid": "a", "diagnosis": diagnosis}, "traces/two": {"uid": "b", "diagnosis": diagnosis}});
        let mut answer = answer(CollectorTier::Gateway, text, pipelines);
        answer.report.as_mut().unwrap().ended = serde_json::from_value(json!([ended])).unwrap();
        let verdicts = assess_delivery(&[answer], &documents);
        ["one", "two"].map(|name| verdicts[&traces(name)].delivery)
    };
    let forward = |age: f64| {
        json!({
            "id": "traces/_sticky", "carries": ["a"], "dropped": {"shutdown": 200},
            "last_drop": {"reason": "shutdown", "age_seconds": age},
        })
    };
    use DeliveryOutcome::{BackendRefuses as Refuses, DataDropped as Dropped, Delivering as Well};
    assert_eq!(said(forward(3.0), "Delivering"), [Dropped, Well]);
    assert_eq!(said(forward(301.0), "Delivering"), [Well, Well], "it is long ago");
    assert_eq!(said(forward(3.0), "BackendRefuses"), [Refuses, Refuses], "trouble with the backend is said first");
    let own = json!({"id": "traces/two", "uid": "b", "last_drop": {"reason": "shutdown", "age_seconds": 1.0}});
    assert_eq!(said(own, "Delivering"), [Well, Dropped], "it was somewhere else before");
    let namesake = json!({"id": "traces/two", "uid": "old", "last_drop": {"reason": "shutdown", "age_seconds": 1.0}});
    assert_eq!(said(namesake, "Delivering"), [Well, Well], "it is of one that had its name before");
}
