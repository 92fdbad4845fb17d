//! A span that is sent as programs send theirs, and followed to the backend.
//!
//! It is seen there if the backend is a viewer. Otherwise the collectors' own figures tell, in which it cannot be told from other spans: that
//! more were delivered than before is then all that is claimed.
//!
//! A pipeline that was found not to deliver a moment ago is not waited for.
//!
//! *Assumed*: its trace id ends in ones, so that sampling by the id keeps it. Whoever filters, or waits for whole traces, may drop it for reasons of their own,
//! which is a warning and no failure.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant, SystemTime},
};

use bytes::Bytes;
use k8s_openapi::api::core::v1::Service;
use kube::{Api, Client};
use kubewake_api::render::OTLP_HTTP_PORT;
use kubewake_operator::names;
use kubewake_trail::in_words;
use serde_json::{Value, json};

use super::{
    Scene, code,
    line::{Line, Section},
    pipelines::is_stuck,
};
use crate::{
    survey::{
        collectors::{self, Totals, totals},
        pipelines::{Kind, Pipeline},
        viewer,
    },
    web::{self, Web},
};

/// For a connection from here, and for an answer.
const PATIENCE: Duration = Duration::from_secs(3);
/// Between two looks.
const PAUSE: Duration = Duration::from_millis(250);
/// A viewer that has not seen a span so long after it was delivered is not the backend.
const GRACE: Duration = Duration::from_secs(3);

/// What is to happen.
struct Expected<'a> {
    /// Pipelines that take spans and may deliver them.
    pipelines: Vec<&'a Pipeline>,
    /// Whether there are others, which do not.
    others_stay: bool,
    /// Their figures before.
    before: BTreeMap<String, Totals>,
    /// Where to look for the span, if somebody is there.
    viewer: Option<String>,
    /// Whether it has to be seen there.
    must_be_seen: bool,
}

pub(super) async fn look(scene: &Scene<'_>, pipelines: &[Pipeline]) -> Section {
    let name = "Probe";
    let active = pipelines.iter().filter(|pipeline| is_active(pipeline)).collect::<Vec<_>>();
    if active.is_empty() && scene.args.endpoint.is_none() {
        let detail = "no TracePipeline is active, so that no span is sent";
        let mend = "kubewake check --endpoint http://127.0.0.1:4318   # for a collector of your own";
        return Section { name, lines: vec![Line::warned(code::KW701, detail, mend)] };
    }
    // Who names an endpoint may well mean a collector of another's.
    let (stuck, active): (Vec<&Pipeline>, Vec<&Pipeline>) =
        active.into_iter().partition(|pipeline| scene.args.endpoint.is_none() && is_stuck(pipeline));
    let web = Web::new(PATIENCE);
    let is_there = viewer::info(&web, &scene.viewer).await.is_ok();
    let expected = Expected {
        before: figures(scene, &active).await,
        pipelines: active,
        others_stay: !stuck.is_empty(),
        viewer: (is_there || scene.viewer.is_named).then(|| scene.viewer.url.clone()),
        must_be_seen: scene.viewer.is_named,
    };
    let (trace, body) = span();
    let lines = match send(scene, &web, body).await {
        Ok(by) => {
            let taken = Line::passed(code::KW701, format!("trace {trace}, {by}"));
            let mut lines = vec![taken];
            lines.extend(stuck.iter().map(|pipeline| stays(pipeline)));
            if stuck.is_empty() || !expected.pipelines.is_empty() {
                lines.push(follow(scene, &web, &trace, &expected).await);
            }
            lines
        }
        Err(why) => {
            let mend = "kubectl get service,endpointslices --namespace kubewake-system\n\
                        kubewake check --endpoint http://HOST:4318   # where the Service can be reached from here: a NodePort, an Ingress";
            vec![Line::failed(code::KW701, why, mend)]
        }
    };
    Section { name, lines }
}

/// Nobody has to wait to learn that it does not arrive by this one.
fn stays(pipeline: &Pipeline) -> Line {
    let detail = format!("{} does not deliver ({}), so that it is not waited for", pipeline.title(), code::KW505.id);
    Line::failed(code::KW702, detail, format!("kubewake check --wait   # once {} is mended", code::KW505.id))
}

/// Whether spans go through it.
fn is_active(pipeline: &Pipeline) -> bool {
    let configured = pipeline.conditions().into_iter().any(|it| it.name == "Configured" && it.status == "True");
    pipeline.kind == Kind::Traces && configured && !pipeline.is_paused()
}

/// A trace of one span, as JSON.
fn span() -> (String, Bytes) {
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

/// To where it was said; else to the Service, by its address or through the API server.
async fn send(scene: &Scene<'_>, web: &Web, body: Bytes) -> Result<String, String> {
    if let Some(endpoint) = &scene.args.endpoint {
        let endpoint = endpoint.trim_end_matches('/');
        let sent = web.post(&format!("{endpoint}/v1/traces"), body).await;
        return sent
            .map_err(|error| format!("{endpoint}: {error}"))
            .and_then(taken)
            .map(|()| format!("sent to {endpoint}"));
    }
    let (client, namespace) = (&scene.cluster.client, &scene.args.cluster.namespace);
    let service = Api::<Service>::namespaced(client.clone(), namespace).get_opt(names::OTLP).await;
    let service =
        service.map_err(|error| format!("the Service {} cannot be seen: {}", names::OTLP, in_words(&error)))?;
    let service = service.ok_or_else(|| format!("there is no Service {} in {namespace}", names::OTLP))?;
    let address = service.spec.and_then(|spec| spec.cluster_ip).unwrap_or_default();
    let address = if address.contains(':') { format!("[{address}]") } else { address };
    let url = format!("http://{address}:{OTLP_HTTP_PORT}/v1/traces");
    match web.post(&url, body.clone()).await {
        Ok(answer) => taken(answer).map(|()| format!("sent to {address}:{OTLP_HTTP_PORT}")),
        // A refusal is an answer: the API server would bring no other.
        Err(error @ (web::Error::Status(..) | web::Error::Answer(_))) => Err(format!("{url}: {error}")),
        Err(direct) => match by_api_server(client, namespace, body).await {
            Ok(answer) => taken(answer).map(|()| "sent through the API server".to_owned()),
            Err(error) => Err(format!("{url}: {direct}; and not through the API server: {}", in_words(&error))),
        },
    }
}

async fn by_api_server(client: &Client, namespace: &str, body: Bytes) -> Result<Bytes, kube::Error> {
    let path = format!("/api/v1/namespaces/{namespace}/services/{}:otlp-http/proxy/v1/traces", names::OTLP);
    let request = http::Request::post(path).header(http::header::CONTENT_TYPE, "application/json").body(body.to_vec());
    client.request_text(request.map_err(kube::Error::HttpError)?).await.map(Bytes::from)
}

/// A receiver may say OK, and that it took nothing.
fn taken(answer: Bytes) -> Result<(), String> {
    let answer: Value = serde_json::from_slice(&answer).unwrap_or_default();
    let rejected = answer
        .pointer("/partialSuccess/rejectedSpans")
        .is_some_and(|it| !matches!(it, Value::Null) && it != 0 && it != "0");
    let why = answer.pointer("/partialSuccess/errorMessage").and_then(Value::as_str).unwrap_or("it does not say why");
    if rejected { Err(format!("it is rejected: {why}")) } else { Ok(()) }
}

/// What collectors count for each of these.
async fn figures(scene: &Scene<'_>, pipelines: &[&Pipeline]) -> BTreeMap<String, Totals> {
    let collectors = collectors::all(&scene.cluster.client, &scene.args.cluster.namespace).await.unwrap_or_default();
    pipelines.iter().filter_map(|it| Some((it.id(), totals(&collectors, &it.id(), &it.uid())?))).collect()
}

async fn follow(scene: &Scene<'_>, web: &Web, trace: &str, expected: &Expected<'_>) -> Line {
    let began = Instant::now();
    let deadline = began + Duration::from_secs(scene.args.probe_seconds);
    let mut delivered_at = None::<Instant>;
    loop {
        if let Some(viewer) = &expected.viewer
            && web.get::<Value>(&format!("{viewer}/api/v1/traces/{trace}")).await.is_ok()
        {
            return Line::passed(code::KW702, format!("seen in {viewer}/trace/{trace}"));
        }
        let after = figures(scene, &expected.pipelines).await;
        let is_last = Instant::now() >= deadline;
        if waits(expected, &after).is_empty() && !expected.pipelines.is_empty() {
            let delivered_at = *delivered_at.get_or_insert_with(Instant::now);
            let looked_long_enough = expected.viewer.is_none() || delivered_at.elapsed() > GRACE;
            if !expected.must_be_seen && (looked_long_enough || is_last) {
                let all = if expected.others_stay { "all other" } else { "all" };
                return Line::passed(
                    code::KW702,
                    format!("the backends of {all} TracePipelines took more spans than before"),
                );
            }
        }
        if is_last {
            return judge(scene.args.probe_seconds, expected, &after);
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// The pipelines that have delivered nothing since.
fn waits<'a>(expected: &Expected<'a>, after: &BTreeMap<String, Totals>) -> Vec<&'a Pipeline> {
    let sent = |figures: &BTreeMap<String, Totals>, id: &str| figures.get(id).map_or(0, |totals| totals.sent);
    let has_not = |pipeline: &&&Pipeline| sent(after, &pipeline.id()) <= sent(&expected.before, &pipeline.id());
    expected.pipelines.iter().filter(has_not).copied().collect()
}

/// Time is up: why it may not have arrived.
fn judge(seconds: u64, expected: &Expected<'_>, after: &BTreeMap<String, Totals>) -> Line {
    let waiting = waits(expected, after);
    if waiting.is_empty() {
        let viewer = expected.viewer.as_deref().unwrap_or_default();
        let detail = format!("it was not seen at {viewer} within {seconds} s, although the collectors delivered spans");
        let mend = "kubectl get telemetry   # does BACKEND lead to that viewer?";
        return Line::failed(code::KW702, detail, mend);
    }
    let names = waiting.iter().map(|pipeline| pipeline.title()).collect::<Vec<_>>().join(", ");
    if after.is_empty() {
        let detail = format!("no collector could be asked, so that nobody knows what became of it ({names})");
        return Line::warned(code::KW702, detail, "kubewake check --viewer URL   # if the backend is a viewer");
    }
    let lost = waiting.iter().find(|pipeline| {
        let dropped =
            |figures: &BTreeMap<String, Totals>| figures.get(&pipeline.id()).map_or(0, |totals| totals.dropped);
        dropped(after) > dropped(&expected.before)
    });
    let what = if lost.is_some() { "dropped something" } else { "delivered nothing" };
    let detail = format!("{names} {what} within {seconds} s");
    let mend = "kubectl get telemetry   # REASON says why\nkubewake status";
    if lost.is_none() && waiting.iter().all(|pipeline| pipeline.is_choosy()) {
        let mend = format!(
            "kubewake check --probe-seconds {}   # where whole traces wait it takes longer",
            seconds.saturating_mul(2)
        );
        return Line::warned(code::KW702, format!("{detail}; input, filter or sampling may have dropped it"), mend);
    }
    Line::failed(code::KW702, detail, mend)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::line::Outcome;

    fn pipeline(spec: Value) -> Pipeline {
        let conditions = json!([{"type": "Configured", "status": "True"}]);
        Pipeline::example(
            Kind::Traces,
            json!({"metadata": {"name": "a"}, "spec": spec, "status": {"conditions": conditions}}),
        )
    }

    fn figures(sent: u64, dropped: u64) -> BTreeMap<String, Totals> {
        BTreeMap::from([("traces/a".to_owned(), Totals { sent, dropped, ..Totals::default() })])
    }

    #[test]
    fn what_became_of_the_span_is_said_as_far_as_it_is_known() {
        let outcome = |spec: Value, after: &BTreeMap<String, Totals>, viewer: Option<&str>| {
            let pipeline = pipeline(spec);
            let viewer = viewer.map(str::to_owned);
            let expected = Expected {
                pipelines: vec![&pipeline],
                others_stay: false,
                before: figures(5, 0),
                must_be_seen: viewer.is_some(),
                viewer,
            };
            judge(9, &expected, after).outcome
        };
        assert_eq!(outcome(json!({}), &figures(5, 0), None), Outcome::Failed);
        assert_eq!(outcome(json!({"filter": []}), &figures(5, 0), None), Outcome::Warned, "it may be meant");
        assert_eq!(outcome(json!({"filter": []}), &figures(5, 1), None), Outcome::Failed, "it was lost");
        assert_eq!(outcome(json!({}), &BTreeMap::new(), None), Outcome::Warned, "nobody knows");
        assert_eq!(outcome(json!({}), &figures(6, 0), Some("http://v")), Outcome::Failed, "another backend got it");
    }

    #[test]
    fn a_span_is_one_that_sampling_keeps() {
        let (trace, body) = span();
        assert!(trace.len() == 32 && trace.ends_with("ffffffffffffff"));
        let body: Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(body["resourceSpans"][0]["scopeSpans"][0]["spans"][0]["traceId"], trace.as_str());
        assert!(is_active(&pipeline(json!({}))) && !is_active(&pipeline(json!({"paused": true}))));
    }

    #[test]
    fn a_partial_success_that_took_nothing_is_a_refusal() {
        let answer = |text: &'static str| taken(Bytes::from_static(text.as_bytes())).is_ok();
        assert!(answer("{}") && answer("") && answer("{\"partialSuccess\":{}}"));
        assert!(answer("{\"partialSuccess\":{\"rejectedSpans\":\"0\",\"errorMessage\":\"a hint\"}}"));
        assert!(!answer("{\"partialSuccess\":{\"rejectedSpans\":\"1\"}}"));
    }
}
