//! The cluster reader against an API server with scripted responses.

use axum::{
    Json, Router,
    extract::Request,
    middleware::{self, Next},
    routing::get,
};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use super::*;
use crate::query::objects::{LiveObjects, ObjectId};

/// A reader of a server that returns these documents, with the folder of its kubeconfig.
async fn cluster(answers: Vec<(&'static str, Value)>) -> (ClusterReader, tempfile::TempDir) {
    let routes = answers
        .into_iter()
        .fold(Router::new(), |router, (path, answer)| router.route(path, get(async move || Json(answer))));
    serve(routes).await
}

async fn serve(routes: Router) -> (ClusterReader, tempfile::TempDir) {
    let (cluster, folder, _) = noted(routes).await;
    (cluster, folder)
}

/// The same with a log of all requests, in order.
async fn noted(routes: Router) -> (ClusterReader, tempfile::TempDir, Arc<Mutex<Vec<String>>>) {
    let missing = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404, "message": "no", "metadata": {}});
    let routes = routes.fallback(async move || (http::StatusCode::NOT_FOUND, Json(missing)));
    let asked = Arc::<Mutex<Vec<String>>>::default();
    let seen = asked.clone();
    let routes = routes.layer(middleware::from_fn(move |request: Request, next: Next| {
        seen.lock().push(request.uri().to_string());
        next.run(request)
    }));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, routes).await.unwrap() });
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("kubeconfig");
    let config = json!({"apiVersion": "v1", "kind": "Config", "current-context": "c",
        "clusters": [{"name": "c", "cluster": {"server": format!("http://{address}")}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}], "users": [{"name": "u", "user": {}}]});
    std::fs::write(&file, config.to_string()).unwrap();
    (ClusterReader::new(file, "kubewake-system"), folder, asked)
}

fn list(kind: &str, items: Value) -> Value {
    json!({"kind": kind, "apiVersion": "v1", "metadata": {"resourceVersion": "1"}, "items": items})
}

/// A discovery document: names and kinds.
fn resources(version: &str, all: &[(&str, &str)]) -> Value {
    let resource = |(name, kind): &(&str, &str)| json!({"name": name, "singularName": "", "namespaced": true, "kind": kind, "verbs": ["list"]});
    let all: Vec<_> = all.iter().map(resource).collect();
    json!({"kind": "APIResourceList", "groupVersion": version, "resources": all})
}

/// Listed kinds and their namespaces.
fn seen(live: &LiveObjects) -> Vec<(&str, Option<&str>)> {
    live.listed_kinds.iter().map(|seen| (seen.kind.as_str(), seen.namespace.as_deref())).collect()
}

fn kinds(all: &[(&str, &str)]) -> Vec<(String, String)> {
    all.iter().map(|(version, kind)| ((*version).to_owned(), (*kind).to_owned())).collect()
}

/// Owner reference of a pod that a ReplicaSet made.
fn owner(name: &str) -> Value {
    json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": name, "uid": name, "controller": true})
}

#[tokio::test]
async fn pipelines_are_shown_with_what_their_collectors_say() {
    let condition =
        json!({"type": "Delivering", "status": "False", "reason": "BackendRefuses", "message": "it refuses"});
    let pipeline = json!({"apiVersion": "telemetry.kubewake.io/v1alpha1", "kind": "TracePipeline", "metadata": {"name": "default"},
        "status": {"state": "Degraded", "reason": "BackendRefuses", "backend": "http://b", "conditions": [condition]}});
    // The pod's address does not respond: its status is read through the API server.
    let pod = json!({"metadata": {"name": "gateway-1", "namespace": "kubewake-system", "ownerReferences": [owner("kubewake-gateway-5d")]},
        "status": {"podIP": "127.0.0.254", "conditions": [{"type": "Ready", "status": "True"}]}});
    let status = json!({"pipelines": {"traces/default": {"received": 10, "delivered": 7, "dropped": {"refused": 3}, "failures": 4,
        "last_error": "authentication", "last_error_code": "grpc:16", "exporters": {"otlp": {"queue_size": 25, "queue_capacity": 100}}},
        "traces/other": {"received": 1}}});
    let (cluster, _folder) = cluster(vec![
        ("/apis/telemetry.kubewake.io/v1alpha1/tracepipelines", list("TracePipelineList", json!([pipeline]))),
        ("/api/v1/namespaces/kubewake-system/pods", list("PodList", json!([pod]))),
        ("/api/v1/namespaces/kubewake-system/pods/gateway-1:13133/proxy/status", status),
    ])
    .await;
    let shown = serde_json::to_value(cluster.pipelines().await.unwrap()).unwrap();
    let pipeline = &shown[0];
    assert_eq!(
        (&pipeline["kind"], &pipeline["state"], &pipeline["message"]),
        (&json!("TracePipeline"), &json!("Degraded"), &json!("it refuses"))
    );
    assert_eq!(pipeline["totals"], json!({"received": 10, "sent": 7, "dropped": 3, "queued": 25}));
    assert_eq!(pipeline["collectors"], json!([{"pod": "gateway-1", "ready": true}]));
    assert_eq!(
        (&pipeline["lastError"], &pipeline["series"]["bufferFill"]),
        (&json!("authentication (grpc:16)"), &json!([0.25]))
    );
}

/// Returns the user agent and the trace context of the request as the name of a pipeline.
async fn echo(headers: http::HeaderMap) -> Json<Value> {
    let header = |name: &str| headers.get_all(name).iter().filter_map(|value| value.to_str().ok()).collect::<Vec<_>>();
    let name = [header("user-agent"), header("traceparent")].concat().join(" ");
    Json(list("TracePipelineList", json!([{"metadata": {"name": name}}])))
}

#[tokio::test]
async fn figures_of_one_that_had_the_name_before_are_not_shown() {
    let pipeline =
        json!({"metadata": {"name": "default", "uid": "new"}, "status": {"droppedAtShutdown": {"items": 200}}});
    let pod = |name: &str, owner: Value| json!({"metadata": {"name": name, "namespace": "kubewake-system", "ownerReferences": [owner]}});
    let ours = || owner("kubewake-gateway-5d");
    let pods = [pod("gateway-1", ours()), pod("gateway-2", ours()), pod("stranger", owner("stranger"))];
    let says = |uid: &str, received: u64| {
        let ended = json!([{"uid": uid, "dropped": {"shutdown": 30}}]);
        let between = json!({"carries": [uid], "dropped": {"queue_full": 4}});
        json!({"pipelines": {"traces/default": {"uid": uid, "received": received}, "traces/_sticky": between}, "ended": ended})
    };
    let (cluster, _folder) = cluster(vec![
        ("/apis/telemetry.kubewake.io/v1alpha1/tracepipelines", list("TracePipelineList", json!([pipeline]))),
        ("/api/v1/namespaces/kubewake-system/pods", list("PodList", json!(pods))),
        ("/api/v1/namespaces/kubewake-system/pods/gateway-1:13133/proxy/status", says("old", 5)),
        ("/api/v1/namespaces/kubewake-system/pods/gateway-2:13133/proxy/status", says("new", 3)),
        ("/api/v1/namespaces/kubewake-system/pods/stranger:13133/proxy/status", says("new", 1000)),
    ])
    .await;
    let shown = serde_json::to_value(cluster.pipelines().await.unwrap()).unwrap();
    assert_eq!(shown[0]["totals"]["received"], 3);
    assert_eq!(shown[0]["totals"]["dropped"], 200 + 30 + 4, "at shutdowns, with an earlier document, and on the way");
}

#[tokio::test]
async fn questions_say_who_asks_and_leave_no_trace() {
    let pods = list("PodList", json!([]));
    let routes = Router::new()
        .route("/apis/telemetry.kubewake.io/v1alpha1/tracepipelines", get(echo))
        .route("/api/v1/namespaces/kubewake-system/pods", get(async move || Json(pods)));
    let (cluster, _folder) = serve(routes).await;
    let shown = serde_json::to_value(cluster.pipelines().await.unwrap()).unwrap();
    assert_eq!(shown[0]["name"], format!("{USER_AGENT_VALUE} {UNSAMPLED_TRACEPARENT}"));
    assert!(USER_AGENT_VALUE.starts_with("kubewake-viewer/") && UNSAMPLED_TRACEPARENT.ends_with("-00"));
}

#[tokio::test]
async fn a_cluster_that_cannot_be_asked_is_said_so() {
    let (without, _folder) =
        cluster(vec![("/api/v1/namespaces/kubewake-system/pods", list("PodList", json!([])))]).await;
    assert!(without.pipelines().await.unwrap_err().contains("not installed"));
    let absent = ClusterReader::new("/nowhere/kubeconfig".into(), "kubewake-system");
    assert!(absent.pipelines().await.unwrap_err().contains("/nowhere/kubeconfig"));
    assert!(absent.list_objects(Some("default"), Vec::new()).await.objects.is_empty());
}

#[tokio::test]
async fn objects_of_the_cluster_name_their_controllers() {
    let meta = |kind: &str, name: &str, owner: Option<(&str, &str)>| {
        let owners = owner.map(
            |(kind, name)| json!([{"apiVersion": "v1", "kind": kind, "name": name, "uid": "u", "controller": true}]),
        );
        json!({"kind": kind, "apiVersion": "v1", "metadata": {"name": name, "namespace": "default", "uid": name, "creationTimestamp": "2026-11-16T12:00:00Z", "annotations": {"tracing.k8s.io/traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"},
            "ownerReferences": owners.unwrap_or_else(|| json!([]))},
            "status": {"conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": "2026-11-16T12:00:02Z"}]}})
    };
    let (cluster, _folder) = cluster(vec![
        ("/api/v1", resources("v1", &[("pods", "Pod")])),
        ("/apis/apps/v1", resources("apps/v1", &[("replicasets", "ReplicaSet")])),
        (
            "/api/v1/namespaces/default/pods",
            list("PartialObjectMetadataList", json!([meta("Pod", "p", Some(("ReplicaSet", "r")))])),
        ),
        (
            "/apis/apps/v1/namespaces/default/replicasets",
            list("PartialObjectMetadataList", json!([meta("ReplicaSet", "r", Some(("Deployment", "d")))])),
        ),
    ])
    .await;
    let kinds = kinds(&[("v1", "Pod"), ("apps/v1", "ReplicaSet"), ("gone/v1", "Head")]);
    let live = cluster.list_objects(Some("default"), kinds).await;
    assert_eq!(seen(&live), [("Pod", Some("default")), ("ReplicaSet", Some("default"))]);
    let owner = ObjectId { kind: "ReplicaSet".into(), namespace: "default".into(), name: "r".into() };
    assert!(live.objects.iter().any(|object| object.key.name == "p" && object.owner == Some(owner.clone())));
    let durations: Vec<_> = live.objects.iter().map(|object| object.stamp.as_ref().unwrap().duration).collect();
    assert!(durations.contains(&Some(2_000_000_000)), "of a pod it is known when it was ready: {durations:?}");
    assert!(durations.contains(&None), "of other kinds the status is not read: {durations:?}");
}

#[tokio::test]
async fn what_is_no_name_is_not_asked_for() {
    let (cluster, _folder, asked) = noted(Router::new()).await;
    let kinds = |version, kind| kinds(&[(version, kind)]);
    for namespace in ["kube-system/secrets?x=", "shop/services/web:80/proxy/reset?x=", "..", "a#b", "a%2fb"] {
        let live = cluster.list_objects(Some(namespace), kinds("v1", "Pod")).await;
        assert!(live.objects.is_empty() && live.listed_kinds.is_empty(), "{namespace}");
    }
    for version in ["v1/namespaces/x/deployments?y", "apps/v1/namespaces", "../v1", "apps/v1?x=", "v1#"] {
        cluster.list_objects(None, kinds(version, "Deployment")).await;
    }
    assert_eq!(*asked.lock(), [""; 0]);
    cluster.list_objects(Some("default"), kinds("apps/v1", "Deployment")).await;
    assert_eq!(*asked.lock(), ["/apis/apps/v1"]);
}

#[tokio::test]
async fn secrets_are_not_even_listed() {
    let served = resources("v1", &[("secrets", "Secret"), ("configmaps", "ConfigMap")]);
    let empty = list("List", json!([]));
    let routes = Router::new()
        .route("/api/v1", get(async move || Json(served)))
        .route("/api/v1/configmaps", get(async move || Json(empty)));
    let (cluster, _folder, asked) = noted(routes).await;
    let live = cluster.list_objects(None, kinds(&[("v1", "Secret"), ("v1", "ConfigMap")])).await;
    assert_eq!(seen(&live), [("ConfigMap", None)]);
    assert_eq!(*asked.lock(), ["/api/v1", "/api/v1/configmaps?&limit=500"]);
}

#[tokio::test]
async fn of_a_list_that_is_too_long_nothing_is_known() {
    let served = resources("v1", &[("pods", "Pod"), ("configmaps", "ConfigMap")]);
    let long = format!(r#"{{"metadata": {{}}, "items": [{{"metadata": {{"name": "p"}}}}]{}}}"#, " ".repeat(32 << 20));
    let short = list("List", json!([{"metadata": {"name": "c"}}]));
    let routes = Router::new()
        .route("/api/v1", get(async move || Json(served)))
        .route("/api/v1/pods", get(async move || long))
        .route("/api/v1/configmaps", get(async move || Json(short)));
    let (cluster, _folder) = serve(routes).await;
    let live = cluster.list_objects(None, kinds(&[("v1", "Pod"), ("v1", "ConfigMap")])).await;
    assert_eq!(live.objects.iter().map(|it| it.key.kind.as_str()).collect::<Vec<_>>(), ["ConfigMap"]);
    assert_eq!(seen(&live), [("ConfigMap", None)]);
}

#[tokio::test]
async fn what_is_too_much_to_ask_for_is_said() {
    let (cluster, _folder, asked) = noted(Router::new()).await;
    let all: Vec<_> = (1..=22).map(|number| (format!("group{number}/v1"), format!("Kind{number}"))).collect();
    assert_eq!(cluster.list_objects(None, all).await.skipped_kinds, ["Kind21", "Kind22"]);
    assert_eq!(asked.lock().len(), 20);
}

#[tokio::test]
async fn a_kind_that_hangs_costs_nothing_of_the_others() {
    let served = resources("v1", &[("pods", "Pod"), ("configmaps", "ConfigMap")]);
    let short = list("List", json!([{"metadata": {"name": "c"}}]));
    let routes = Router::new()
        .route("/api/v1", get(async move || Json(served)))
        .route("/api/v1/pods", get(std::future::pending::<()>))
        .route("/api/v1/configmaps", get(async move || Json(short)));
    let (cluster, _folder, asked) = noted(routes).await;
    let all = || kinds(&[("v1", "Pod"), ("v1", "ConfigMap")]);
    assert_eq!(cluster.list_objects(None, all()).await.objects.len(), 1);
    assert!(cluster.state.client.lock().is_some(), "it is there, and not to be looked for anew");
    assert!(asked.lock().iter().any(|path| path.starts_with("/api/v1/pods")));
}

#[tokio::test]
async fn a_cluster_that_is_silent_may_be_elsewhere_by_now() {
    let (cluster, _folder) = serve(Router::new().route("/api/v1", get(std::future::pending::<()>))).await;
    assert!(cluster.list_objects(None, kinds(&[("v1", "Pod")])).await.objects.is_empty());
    assert!(cluster.state.client.lock().is_none());
}

#[tokio::test]
async fn several_who_ask_cost_a_cluster_as_much_as_one() {
    let served = resources("v1", &[("pods", "Pod")]);
    let pods = list("PodList", json!([{"metadata": {"name": "p"}}]));
    let routes = Router::new()
        .route("/api/v1", get(async move || Json(served)))
        .route("/api/v1/pods", get(async move || Json(pods)));
    let (cluster, _folder, asked) = noted(routes).await;
    let ask = || cluster.list_objects(None, kinds(&[("v1", "Pod")]));
    let (one, other) = tokio::join!(ask(), ask());
    assert_eq!((one.objects.len(), other.objects.len()), (1, 1));
    assert_eq!(*asked.lock(), ["/api/v1", "/api/v1/pods?&limit=500"]);
}
