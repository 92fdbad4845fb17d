//! Documents on a real disk.

use std::{os::unix::fs::symlink, time::Duration};

use tempfile::TempDir;

use super::*;

/// A document whose only receiver has these settings.
fn document(settings: &str) -> String {
    format!(
        "receivers: {{ otlp: {{ protocols: {{ http: {{ endpoint: '127.0.0.1:0'{settings} }} }} }} }}\n\
         exporters: {{ nop: }}\n\
         service:\n  telemetry: {{ metrics: {{ level: none }} }}\n  \
         pipelines: {{ traces: {{ receivers: [otlp], exporters: [nop] }} }}\n"
    )
}

async fn start(path: &Path) -> Arc<CollectorService> {
    let options = EngineOptions { drain_limit: Duration::from_secs(1), default_budget: 1 << 20, state_directory: None };
    CollectorService::start(path, Arc::new(SystemSources), options).await.unwrap().0
}

/// The number of documents that were applied, and that were refused.
fn revisions(service: &CollectorService) -> (u64, u64) {
    let registry = service.engine.registry();
    let read = |counter: &std::sync::atomic::AtomicU64| counter.load(std::sync::atomic::Ordering::Relaxed);
    (read(&registry.reloads_applied), read(&registry.reloads_refused))
}

/// Watches in the background until this many documents were applied and refused.
async fn watch_until(service: &Arc<CollectorService>, wanted: (u64, u64)) {
    let reached = async {
        while revisions(service) != wanted {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::select! {
        () = service.watch() => {}
        reached = tokio::time::timeout(Duration::from_secs(15), reached) => reached.expect("it is noticed"),
    }
}

fn folder() -> TempDir {
    tempfile::tempdir().unwrap()
}

#[tokio::test]
async fn a_bad_document_is_refused_as_a_whole_shown_and_forgotten_when_it_is_mended() {
    let folder = folder();
    let path = folder.path().join("config.yaml");
    fs::write(&path, document("")).unwrap();
    let service = start(&path).await;
    let listeners = service.engine().overview().listeners.clone();
    fs::write(&path, document(", no_such_field: 1")).unwrap();
    let error = service.reload().await.unwrap_err();
    assert!(error.to_string().contains("no_such_field"), "{error}");
    let shown = service.telemetry().running();
    let revision = shown.revision.as_ref().unwrap();
    let refused = shown.refused.as_ref().unwrap();
    assert_eq!(revision.number, 1);
    assert!(refused.hash != revision.hash && refused.reasons[0].contains("no_such_field"));
    assert_eq!((service.engine().overview().listeners.clone(), revisions(&service)), (listeners.clone(), (1, 1)));
    fs::write(&path, document(", max_request_body_size: 10")).unwrap();
    service.reload().await.unwrap();
    assert!(service.telemetry().running().refused.is_none());
    assert_eq!((service.engine().overview().listeners.clone(), revisions(&service)), (listeners, (2, 1)));
}

#[tokio::test]
async fn a_symbolic_link_that_leads_elsewhere_is_a_change() {
    // As Kubernetes mounts it: the file is a link through `..data`, which is swapped.
    let folder = folder();
    let at = |name: &str| folder.path().join(name);
    for (version, settings) in [("..1", ""), ("..2", ", max_request_body_size: 10")] {
        fs::create_dir(at(version)).unwrap();
        fs::write(at(version).join("config.yaml"), document(settings)).unwrap();
    }
    symlink("..1", at("..data")).unwrap();
    symlink("..data/config.yaml", at("config.yaml")).unwrap();
    let service = start(&at("config.yaml")).await;
    symlink("..2", at("..data_tmp")).unwrap();
    fs::rename(at("..data_tmp"), at("..data")).unwrap();
    watch_until(&service, (2, 0)).await;
}

#[tokio::test]
async fn a_file_that_a_refused_document_misses_is_waited_for() {
    let folder = folder();
    let path = folder.path().join("config.yaml");
    let token = folder.path().join("secrets");
    fs::create_dir(&token).unwrap();
    let token = token.join("token");
    fs::write(&path, document("")).unwrap();
    let service = start(&path).await;
    let with_token = document(", auth: { authenticator: bearertokenauth }")
        .replace("service:\n", "service:\n  extensions: [bearertokenauth]\n");
    let extension = format!("extensions: {{ bearertokenauth: {{ filename: '{}' }} }}\n", token.display());
    fs::write(&path, extension + &with_token).unwrap();
    watch_until(&service, (1, 1)).await;
    fs::write(&token, "secret").unwrap();
    watch_until(&service, (2, 1)).await;
}

#[tokio::test]
async fn after_the_end_a_reload_starts_nothing() {
    let folder = folder();
    let path = folder.path().join("config.yaml");
    fs::write(&path, document("")).unwrap();
    let service = start(&path).await;
    service.stop().await;
    assert!(service.reload().await.is_err());
}

#[tokio::test]
async fn a_change_that_was_loaded_on_request_is_not_loaded_again() {
    let folder = folder();
    let path = folder.path().join("config.yaml");
    fs::write(&path, document("")).unwrap();
    let service = start(&path).await;
    fs::write(&path, document(", max_request_body_size: 10")).unwrap();
    service.reload().await.unwrap();
    service.reload_if_changed().await.unwrap();
    assert_eq!(revisions(&service), (2, 0));
    service.reload().await.unwrap();
    assert_eq!(revisions(&service), (3, 0), "who asks for it gets it");
    fs::write(&path, document(", max_request_body_size: 20")).unwrap();
    service.reload_if_changed().await.unwrap();
    assert_eq!(revisions(&service), (4, 0));
    fs::write(&path, document(", no_such_field: 1")).unwrap();
    service.reload().await.unwrap_err();
    service.reload_if_changed().await.unwrap();
    assert_eq!(revisions(&service), (4, 1), "and is not refused again");
    fs::write(&path, document(", max_request_body_size: 20")).unwrap();
    service.reload_if_changed().await.unwrap();
    assert!(service.telemetry().running().refused.is_none(), "a refusal is not in force any more");
}

/// Sends a request with one span, and returns whether it was taken.
async fn send(to: std::net::SocketAddr) -> bool {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let body = r#"{"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":"5b8efff798038103d269b633813fc60c","spanId":"eee19b7ec3c1b174","name":"buy"}]}]}]}"#;
    let head = "POST /v1/traces HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\nconnection: close\r\n";
    let request = format!("{head}content-length: {}\r\n\r\n{body}", body.len());
    let mut stream = tokio::net::TcpStream::connect(to).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.unwrap();
    answer.starts_with(b"HTTP/1.1 200")
}

/// A document that sends to an address, with a pipeline of this id.
fn sending(to: std::net::SocketAddr, pipeline: &str) -> String {
    format!(
        "receivers: {{ otlp: {{ protocols: {{ http: {{ endpoint: '127.0.0.1:0' }} }} }} }}\n\
         exporters: {{ otlphttp: {{ endpoint: 'http://{to}' }} }}\n\
         service:\n  telemetry: {{ metrics: {{ level: none }} }}\n  \
         pipelines: {{ {pipeline}: {{ receivers: [otlp], exporters: [otlphttp], uid: one, carries: [other] }} }}\n"
    )
}

#[tokio::test]
async fn end_of_a_service_tells_what_was_acknowledged_and_not_delivered() {
    // A server that accepts connections and never answers.
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let folder = folder();
    let path = folder.path().join("config.yaml");
    fs::write(&path, sending(silent.local_addr().unwrap(), "traces/a")).unwrap();
    let service = start(&path).await;
    let at = service.engine().overview().listeners[0].2;
    assert!(send(at).await && send(at).await);
    let report = service.stop().await;
    let lost = |items| DroppedItems {
        items,
        reason: "shutdown",
        id: "traces/a".to_owned(),
        uid: Some("one".to_owned()),
        carries: vec!["other".to_owned()],
    };
    assert_eq!(report.dropped, [lost(2)]);
}

#[tokio::test]
async fn loss_of_a_pipeline_that_left_the_document_stays_in_the_status() {
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let folder = folder();
    let path = folder.path().join("config.yaml");
    fs::write(&path, sending(silent.local_addr().unwrap(), "traces/a")).unwrap();
    let service = start(&path).await;
    assert!(send(service.engine().overview().listeners[0].2).await);
    fs::write(&path, document("")).unwrap();
    service.reload().await.unwrap();
    let ended = async {
        loop {
            let status = service.telemetry().status(&kubewake_config::model::PipelineCheck::default());
            if let [ended] = status.ended.as_slice() {
                return ended.clone();
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let ended = tokio::time::timeout(Duration::from_secs(60), ended).await.expect("it is told of");
    assert_eq!((ended.id.as_str(), ended.uid.as_deref()), ("traces/a", Some("one")));
    assert_eq!((ended.carries, ended.dropped["shutdown"]), (vec!["other".to_owned()], 1));
    service.stop().await;
}

#[test]
fn check_accepts_connectors() {
    let folder = folder();
    let path = folder.path().join("collector.yaml");
    let connected = document("")
        .replace("exporters: {", "connectors: { forward: }\nexporters: {")
        .replace("exporters: [nop]", "exporters: [forward]")
        .replace("[forward] }", "[forward] }, traces/out: { receivers: [forward], exporters: [nop] }");
    fs::write(&path, connected).unwrap();
    assert!(check(&path, &SystemSources).is_ok());
}
