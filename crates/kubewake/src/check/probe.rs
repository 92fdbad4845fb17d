//! Sends a probe span as programs send theirs, and follows it to the backend.
//!
//! If the backend is a viewer, the span is looked up there. Otherwise only the collectors' counters are
//! available, which do not distinguish it from other spans: the check then claims no more than that the number
//! of delivered spans has grown.
//!
//! A pipeline that is known not to deliver is not waited for, and the wait ends as soon as one is found to be
//! stuck.
//!
//! *Assumed*: the trace id ends in ones, so that sampling by the id keeps it. Filters and tail sampling may
//! drop it for other reasons, which is a warning and no failure.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant, SystemTime},
};

use bytes::Bytes;
use k8s_openapi::api::core::v1::Service;
use kube::{Api, Client};
use kubewake_api::render::OTLP_HTTP_PORT;
use kubewake_operator::names;
use kubewake_trail::error_chain;
use serde_json::{Value, json};

use super::{
    CheckContext, codes,
    pipelines::{delivery_failure, is_stuck},
    report::{CheckLine, CheckSection},
};
use crate::{
    http_client::{self, JsonHttpClient},
    inventory::{
        collectors::{self, PipelineTotals, sum_totals},
        pipelines::{self, InstalledPipeline, InstalledPipelineKind},
        viewer,
    },
};

/// For connections from here, and for responses.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(3);
const POLL_INTERVAL: Duration = Duration::from_millis(250);
/// How often the status of pipelines is read while the probe span is in flight.
const STATUS_INTERVAL: Duration = Duration::from_secs(1);
/// A viewer that lacks a span this long after its delivery is not the backend.
const VIEWER_GRACE_PERIOD: Duration = Duration::from_secs(3);

struct ProbeExpectation<'a> {
    /// Active pipelines that are not stuck.
    pipelines: Vec<&'a InstalledPipeline>,
    /// Whether other active pipelines are stuck.
    has_stuck_pipelines: bool,
    before: BTreeMap<String, PipelineTotals>,
    /// The viewer to query, if it responds or was named.
    viewer: Option<String>,
    /// Whether the span must arrive there.
    viewer_required: bool,
}

pub(super) async fn check(scene: &CheckContext<'_>, pipelines: &[InstalledPipeline]) -> CheckSection {
    let name = "Probe";
    let active = pipelines.iter().filter(|pipeline| is_active(pipeline)).collect::<Vec<_>>();
    if active.is_empty() && scene.args.endpoint.is_none() {
        let detail = "no TracePipeline is active, so no span is sent";
        let mend =
            "kubewake check --endpoint http://127.0.0.1:4318   # for a collector that the operator does not manage";
        return CheckSection { name, lines: vec![CheckLine::warned(codes::KW701, detail, mend)] };
    }
    // A given endpoint may belong to a collector that the operator does not manage.
    let (stuck, active): (Vec<&InstalledPipeline>, Vec<&InstalledPipeline>) =
        active.into_iter().partition(|pipeline| scene.args.endpoint.is_none() && is_stuck(pipeline));
    let web = JsonHttpClient::new(REQUEST_TIMEOUT);
    let is_there = viewer::fetch_info(&web, &scene.viewer).await.is_ok();
    let expected = ProbeExpectation {
        before: fetch_totals(scene, &active).await,
        pipelines: active,
        has_stuck_pipelines: !stuck.is_empty(),
        viewer: (is_there || scene.viewer.is_named).then(|| scene.viewer.url.clone()),
        viewer_required: scene.viewer.is_named,
    };
    let (trace, body) = encode_probe_span();
    let lines = match send_probe(scene, &web, body).await {
        Ok(by) => {
            let taken = CheckLine::passed(codes::KW701, format!("trace {trace}, {by}"));
            let mut lines = vec![taken];
            lines.extend(stuck.iter().map(|pipeline| stuck_pipeline_line(pipeline)));
            if stuck.is_empty() || !expected.pipelines.is_empty() {
                lines.extend(wait_for_delivery(scene, &web, &trace, &expected).await);
            }
            lines
        }
        Err(why) => {
            let mend = "kubectl get service,endpointslices --namespace kubewake-system\n\
                        kubewake check --endpoint http://HOST:4318   # an address of the Service that is reachable from here: a NodePort, an Ingress";
            vec![CheckLine::failed(codes::KW701, why, mend)]
        }
    };
    CheckSection { name, lines }
}

/// A stuck pipeline fails at once, without a wait.
fn stuck_pipeline_line(pipeline: &InstalledPipeline) -> CheckLine {
    let detail =
        format!("{} does not deliver ({}), so its delivery is not awaited", pipeline.display_name(), codes::KW505.id);
    CheckLine::failed(codes::KW702, detail, format!("kubewake check --wait   # waits until {} passes", codes::KW505.id))
}

/// Whether the pipeline receives spans.
fn is_active(pipeline: &InstalledPipeline) -> bool {
    let configured = pipeline.conditions().into_iter().any(|it| it.name == "Configured" && it.status == "True");
    pipeline.kind == InstalledPipelineKind::Traces && configured && !pipeline.is_paused()
}

/// A trace of one span, as JSON.
fn encode_probe_span() -> (String, Bytes) {
    let trace = format!("{:016x}{:02x}ffffffffffffff", fastrand::u64(1..), fastrand::u8(..));
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_nanos();
    let attribute = |key: &str, value: &str| json!({"key": key, "value": {"stringValue": value}});
    let body = json!({"resourceSpans": [{
        "resource": {"attributes": [
            attribute("service.name", "kubewake-check"),
            attribute("service.version", env!("CARGO_PKG_VERSION")),
        ]},
        "scopeSpans": [{"scope": {"name": "kubewake-check"}, "spans": [{
            "traceId": trace, "spanId": format!("{:016x}", fastrand::u64(1..)), "name": "kubewake check", "kind": 1,
            "startTimeUnixNano": now.to_string(), "endTimeUnixNano": (now + 1_000_000).to_string(),
        }]}],
    }]});
    (trace, Bytes::from(body.to_string()))
}

/// Sends to the given endpoint; else to the Service, at its address or through the API server.
async fn send_probe(scene: &CheckContext<'_>, web: &JsonHttpClient, body: Bytes) -> Result<String, String> {
    if let Some(endpoint) = &scene.args.endpoint {
        let endpoint = endpoint.trim_end_matches('/');
        let sent = web.post(&format!("{endpoint}/v1/traces"), body).await;
        return sent
            .map_err(|error| format!("{endpoint}: {error}"))
            .and_then(check_accepted)
            .map(|()| format!("sent to {endpoint}"));
    }
    let client = &scene.cluster.client;
    let namespace = &scene.args.cluster.namespace;
    let service = Api::<Service>::namespaced(client.clone(), namespace).get_opt(names::OTLP_SERVICE).await;
    let service =
        service.map_err(|error| format!("failed to get Service {}: {}", names::OTLP_SERVICE, error_chain(&error)))?;
    let service =
        service.ok_or_else(|| format!("there is no Service {} in namespace {namespace}", names::OTLP_SERVICE))?;
    let address = service.spec.and_then(|spec| spec.cluster_ip).unwrap_or_default();
    let address = if address.contains(':') { format!("[{address}]") } else { address };
    let url = format!("http://{address}:{OTLP_HTTP_PORT}/v1/traces");
    match web.post(&url, body.clone()).await {
        Ok(answer) => check_accepted(answer).map(|()| format!("sent to {address}:{OTLP_HTTP_PORT}")),
        // A receiver responded: a request through the API server would have the same result.
        Err(error @ (http_client::JsonHttpError::Status(..) | http_client::JsonHttpError::InvalidResponse(_))) => {
            Err(format!("{url}: {error}"))
        }
        Err(direct) => match send_through_api_server(client, namespace, body).await {
            Ok(answer) => check_accepted(answer).map(|()| "sent through the API server".to_owned()),
            Err(error) => Err(format!("{url}: {direct}; through the API server: {}", error_chain(&error))),
        },
    }
}

async fn send_through_api_server(client: &Client, namespace: &str, body: Bytes) -> Result<Bytes, kube::Error> {
    let path = format!("/api/v1/namespaces/{namespace}/services/{}:otlp-http/proxy/v1/traces", names::OTLP_SERVICE);
    let request = http::Request::post(path).header(http::header::CONTENT_TYPE, "application/json").body(body.to_vec());
    client.request_text(request.map_err(kube::Error::HttpError)?).await.map(Bytes::from)
}

/// A successful response may contain a partial success that rejects the span.
fn check_accepted(answer: Bytes) -> Result<(), String> {
    let answer: Value = serde_json::from_slice(&answer).unwrap_or_default();
    let rejected = answer
        .pointer("/partialSuccess/rejectedSpans")
        .is_some_and(|it| !matches!(it, Value::Null) && it != 0 && it != "0");
    let why =
        answer.pointer("/partialSuccess/errorMessage").and_then(Value::as_str).unwrap_or("no reason was reported");
    if rejected { Err(format!("the span was rejected: {why}")) } else { Ok(()) }
}

/// The collectors' counters of these pipelines.
async fn fetch_totals(scene: &CheckContext<'_>, pipelines: &[&InstalledPipeline]) -> BTreeMap<String, PipelineTotals> {
    let collectors =
        collectors::list_collectors(&scene.cluster.client, &scene.args.cluster.namespace).await.unwrap_or_default();
    pipelines.iter().filter_map(|it| Some((it.id(), sum_totals(&collectors, &it.id(), &it.uid())?))).collect()
}

async fn wait_for_delivery(
    scene: &CheckContext<'_>,
    web: &JsonHttpClient,
    trace: &str,
    expected: &ProbeExpectation<'_>,
) -> Vec<CheckLine> {
    let began = Instant::now();
    let deadline = began + Duration::from_secs(scene.args.probe_seconds);
    let mut delivered_at = None::<Instant>;
    let mut status_read_at = began;
    let mut stuck_at = None::<Instant>;
    loop {
        if let Some(viewer) = &expected.viewer
            && web.get::<Value>(&format!("{viewer}/api/v1/traces/{trace}")).await.is_ok()
        {
            return vec![CheckLine::passed(codes::KW702, format!("seen in {viewer}/trace/{trace}"))];
        }
        let after = fetch_totals(scene, &expected.pipelines).await;
        let is_last = Instant::now() >= deadline;
        if undelivered_pipelines(expected, &after).is_empty() && !expected.pipelines.is_empty() {
            let delivered_at = *delivered_at.get_or_insert_with(Instant::now);
            let looked_long_enough = expected.viewer.is_none() || delivered_at.elapsed() > VIEWER_GRACE_PERIOD;
            if !expected.viewer_required && (looked_long_enough || is_last) {
                let all = if expected.has_stuck_pipelines { "all other" } else { "all" };
                let detail = format!("the backends of {all} TracePipelines accepted spans since the probe was sent");
                return vec![CheckLine::passed(codes::KW702, detail)];
            }
        }
        if is_last {
            return vec![explain_timeout(scene.args.probe_seconds, expected, &after)];
        }
        if status_read_at.elapsed() >= STATUS_INTERVAL {
            let (current, _) = pipelines::list_pipelines(&scene.cluster.client).await;
            let failures = explain_stuck_pipelines(expected, &after, &current);
            // The viewer may be the backend of another pipeline, which has delivered.
            let is_elsewhere = expected.viewer.is_some() && failures.len() < expected.pipelines.len();
            if failures.is_empty() {
                stuck_at = None;
            } else if !is_elsewhere || stuck_at.get_or_insert_with(Instant::now).elapsed() > VIEWER_GRACE_PERIOD {
                return failures;
            }
            status_read_at = Instant::now();
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

/// Why no pipeline without a delivery can deliver as it is. Empty as long as one of them may.
fn explain_stuck_pipelines(
    expected: &ProbeExpectation<'_>,
    after: &BTreeMap<String, PipelineTotals>,
    current: &[InstalledPipeline],
) -> Vec<CheckLine> {
    let failure = |waiting: &InstalledPipeline| {
        let current = current.iter().find(|it| it.id() == waiting.id() && it.uid() == waiting.uid())?;
        delivery_failure(current).map(|failure| CheckLine::failed(codes::KW702, failure.detail, failure.mend))
    };
    let failures: Option<Vec<_>> = undelivered_pipelines(expected, after).into_iter().map(failure).collect();
    failures.unwrap_or_default()
}

/// The pipelines that have delivered no data since the probe was sent.
fn undelivered_pipelines<'a>(
    expected: &ProbeExpectation<'a>,
    after: &BTreeMap<String, PipelineTotals>,
) -> Vec<&'a InstalledPipeline> {
    let sent = |figures: &BTreeMap<String, PipelineTotals>, id: &str| figures.get(id).map_or(0, |totals| totals.sent);
    let has_not =
        |pipeline: &&&InstalledPipeline| sent(after, &pipeline.id()) <= sent(&expected.before, &pipeline.id());
    expected.pipelines.iter().filter(has_not).copied().collect()
}

/// Why the span has not arrived within the time limit.
fn explain_timeout(
    seconds: u64,
    expected: &ProbeExpectation<'_>,
    after: &BTreeMap<String, PipelineTotals>,
) -> CheckLine {
    let waiting = undelivered_pipelines(expected, after);
    if waiting.is_empty() {
        let viewer = expected.viewer.as_deref().unwrap_or_default();
        let detail =
            format!("the span did not arrive at {viewer} within {seconds} s, although the collectors delivered spans");
        let mend = "kubectl get telemetry   # compare BACKEND with the address of the viewer";
        return CheckLine::failed(codes::KW702, detail, mend);
    }
    let names = waiting.iter().map(|pipeline| pipeline.display_name()).collect::<Vec<_>>().join(", ");
    if after.is_empty() {
        let detail =
            format!("failed to read the status of any collector, so the delivery of the span is unknown ({names})");
        return CheckLine::warned(codes::KW702, detail, "kubewake check --viewer URL   # if the backend is a viewer");
    }
    let lost = waiting.iter().find(|pipeline| {
        let dropped =
            |figures: &BTreeMap<String, PipelineTotals>| figures.get(&pipeline.id()).map_or(0, |totals| totals.dropped);
        dropped(after) > dropped(&expected.before)
    });
    let what = if lost.is_some() { "dropped data" } else { "delivered no data" };
    let detail = format!("{names} {what} within {seconds} s");
    let mend = "kubectl get telemetry   # shows the reason\nkubewake status";
    if lost.is_none() && waiting.iter().all(|pipeline| pipeline.is_selective()) {
        let mend = format!(
            "kubewake check --probe-seconds {}   # sampling of whole traces delays the span",
            seconds.saturating_mul(2)
        );
        return CheckLine::warned(
            codes::KW702,
            format!("{detail}; input, filter or sampling may have dropped the span"),
            mend,
        );
    }
    CheckLine::failed(codes::KW702, detail, mend)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::report::CheckOutcome;

    fn pipeline(spec: Value) -> InstalledPipeline {
        let conditions = json!([{"type": "Configured", "status": "True"}]);
        InstalledPipeline::example(
            InstalledPipelineKind::Traces,
            json!({"metadata": {"name": "a"}, "spec": spec, "status": {"conditions": conditions}}),
        )
    }

    fn figures(sent: u64, dropped: u64) -> BTreeMap<String, PipelineTotals> {
        BTreeMap::from([("traces/a".to_owned(), PipelineTotals { sent, dropped, ..PipelineTotals::default() })])
    }

    #[test]
    fn what_became_of_the_span_is_said_as_far_as_it_is_known() {
        let outcome = |spec: Value, after: &BTreeMap<String, PipelineTotals>, viewer: Option<&str>| {
            let pipeline = pipeline(spec);
            let viewer = viewer.map(str::to_owned);
            let expected = ProbeExpectation {
                pipelines: vec![&pipeline],
                has_stuck_pipelines: false,
                before: figures(5, 0),
                viewer_required: viewer.is_some(),
                viewer,
            };
            explain_timeout(9, &expected, after).outcome
        };
        assert_eq!(outcome(json!({}), &figures(5, 0), None), CheckOutcome::Failed);
        assert_eq!(outcome(json!({"filter": []}), &figures(5, 0), None), CheckOutcome::Warned, "it may be meant");
        assert_eq!(outcome(json!({"filter": []}), &figures(5, 1), None), CheckOutcome::Failed, "it was lost");
        assert_eq!(outcome(json!({}), &BTreeMap::new(), None), CheckOutcome::Warned, "nobody knows");
        assert_eq!(
            outcome(json!({}), &figures(6, 0), Some("http://v")),
            CheckOutcome::Failed,
            "another backend got it"
        );
    }

    #[test]
    fn probe_ends_when_every_pipeline_it_waits_for_is_found_not_to_deliver() {
        let observed = |name: &str, delivering: &str, reason: &str| {
            let condition =
                json!({"type": "Delivering", "status": delivering, "reason": reason, "message": "connection refused"});
            let object = json!({"metadata": {"name": name, "uid": name, "generation": 1},
                "status": {"observedGeneration": 1, "conditions": [condition]}});
            InstalledPipeline::example(InstalledPipelineKind::Traces, object)
        };
        let (one, other) = (observed("a", "Unknown", "NoData"), observed("b", "Unknown", "NoData"));
        let expected = ProbeExpectation {
            pipelines: vec![&one, &other],
            has_stuck_pipelines: false,
            before: figures(5, 0),
            viewer: None,
            viewer_required: false,
        };
        let dead = |name| observed(name, "False", "BackendUnreachable");
        let told = |after, current: &[InstalledPipeline]| {
            let lines = explain_stuck_pipelines(&expected, &after, current);
            lines.iter().map(|line| (line.code.id, line.detail.clone())).collect::<Vec<_>>()
        };
        assert_eq!(told(figures(5, 0), &[one.clone(), dead("b")]), [], "the first may still deliver");
        assert_eq!(told(figures(5, 0), &[dead("b")]), [], "nothing is known of the first");
        let failure = |name| ("KW702", format!("tracepipeline/{name}: connection refused (BackendUnreachable)"));
        assert_eq!(told(figures(5, 0), &[dead("a"), dead("b")]), [failure("a"), failure("b")]);
        assert_eq!(told(figures(6, 0), &[one.clone(), dead("b")]), [failure("b")], "the first has delivered");
    }

    #[test]
    fn a_span_is_one_that_sampling_keeps() {
        let (trace, body) = encode_probe_span();
        assert!(trace.len() == 32 && trace.ends_with("ffffffffffffff"));
        let body: Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(body["resourceSpans"][0]["scopeSpans"][0]["spans"][0]["traceId"], trace.as_str());
        assert!(is_active(&pipeline(json!({}))) && !is_active(&pipeline(json!({"paused": true}))));
    }

    #[test]
    fn a_partial_success_that_took_nothing_is_a_refusal() {
        let answer = |text: &'static str| check_accepted(Bytes::from_static(text.as_bytes())).is_ok();
        assert!(answer("{}") && answer("") && answer("{\"partialSuccess\":{}}"));
        assert!(answer("{\"partialSuccess\":{\"rejectedSpans\":\"0\",\"errorMessage\":\"a hint\"}}"));
        assert!(!answer("{\"partialSuccess\":{\"rejectedSpans\":\"1\"}}"));
    }
}
