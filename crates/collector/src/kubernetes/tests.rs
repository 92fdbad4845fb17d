//! A server with scripted responses, over a real socket.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use kubewake_config::{
    SecretString,
    model::{ClientTls, ServiceAccountFiles},
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::{access::BearerToken, *};
use crate::net::testing::{Backend, Reply, Speaks};

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Thing {
    metadata: ObjectMetadata,
}

impl WatchedObject for Thing {
    fn metadata(&self) -> &ObjectMetadata {
        &self.metadata
    }
}

fn thing(name: &str, version: u32) -> String {
    format!(r#"{{"metadata":{{"name":"{name}","resourceVersion":"{version}"}},"status":{{"much":[1,2,3]}}}}"#)
}

fn access(server: &Backend, token: BearerToken) -> ClusterAccess {
    let server = format!("http://{}", server.address);
    ClusterAccess { server, tls: ClientTls::default(), token, namespace: None }
}

/// Descriptions of the first events, this many.
async fn heard(client: &ApiClient, query: &WatchQuery, count: usize) -> Vec<String> {
    let mut words = Vec::new();
    let listening = watch(client, query, |event: ObjectEvent<Thing>| {
        words.push(match event {
            ObjectEvent::ListStarted => "begin".to_owned(),
            ObjectEvent::ListCompleted => "complete".to_owned(),
            ObjectEvent::Applied(thing) => format!("+{}", thing.metadata.name),
            ObjectEvent::Deleted(thing) => format!("-{}", thing.metadata.name),
            ObjectEvent::Resumed => "resumed".to_owned(),
            ObjectEvent::Failed(error) => format!("failed: {error}"),
        });
        words.len() < count
    });
    tokio::time::timeout(Duration::from_secs(20), listening).await.expect("in time");
    words
}

#[tokio::test]
async fn it_lists_by_pages_watches_on_from_bookmarks_and_begins_anew_when_that_is_too_old() {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let seen = asked.clone();
    let server = Backend::start(Speaks::Http1, None, move |request, number| {
        seen.lock().unwrap().push(request.uri.to_string());
        let event = |kind: &str, object: String| format!("{{\"type\":\"{kind}\",\"object\":{object}}}\n");
        let body = match number {
            0 => format!(r#"{{"metadata":{{"resourceVersion":"5","continue":"more/1"}},"items":[{}]}}"#, thing("a", 3)),
            1 => format!(r#"{{"metadata":{{"resourceVersion":"5"}},"items":[{}]}}"#, thing("b", 4)),
            2 => [
                event("ADDED", thing("c", 6)),
                event("BOOKMARK", r#"{"kind":"Thing","metadata":{"resourceVersion":"9"}}"#.into()),
            ]
            .concat(),
            3 => event("DELETED", thing("a", 10)),
            4 => event("ERROR", r#"{"kind":"Status","status":"Failure","code":410,"message":"too old"}"#.into()),
            _ => format!(r#"{{"metadata":{{"resourceVersion":"20"}},"items":[{}]}}"#, thing("b", 4)),
        };
        Reply::http(200, &[("content-type", "application/json")], body)
    })
    .await;
    let client = ApiClient::new(&access(&server, BearerToken::None)).unwrap();
    let query = WatchQuery { labels: "app in (x,y)".into(), ..WatchQuery::all("/api/v1/things") };
    let words = heard(&client, &query, 9).await;
    assert_eq!(words, ["begin", "+a", "+b", "complete", "+c", "-a", "begin", "+b", "complete"]);
    let asked = asked.lock().unwrap();
    assert_eq!(asked[0], "/api/v1/things?labelSelector=app%20in%20%28x%2Cy%29&limit=250");
    assert!(asked[1].ends_with("&continue=more%2F1"), "{}", asked[1]);
    assert!(asked[2].contains("watch=true") && asked[2].contains("resourceVersion=5"), "{}", asked[2]);
    assert!(asked[3].contains("resourceVersion=9"), "{}", asked[3]);
    assert!(asked[4].contains("resourceVersion=10"), "{}", asked[4]);
    assert!(!asked[5].contains("watch"), "{}", asked[5]);
}

#[tokio::test]
async fn a_refusal_is_told_in_the_servers_words_and_it_is_asked_again() {
    let server = Backend::start(Speaks::Http1, None, |_, number| match number {
        0 => Reply::http(403, &[], r#"{"kind":"Status","message":"things is forbidden"}"#),
        1 => Reply::http(200, &[], "no JSON"),
        _ => Reply::http(200, &[], r#"{"metadata":{"resourceVersion":"1"},"items":[]}"#),
    })
    .await;
    let client = ApiClient::new(&access(&server, BearerToken::None)).unwrap();
    let words = heard(&client, &WatchQuery::all("/api/v1/things"), 6).await;
    assert!(words[1].starts_with("failed: http://") && words[1].ends_with("things is forbidden"), "{}", words[1]);
    assert!(words[3].contains("invalid response"), "{}", words[3]);
    assert_eq!(words[4..], ["begin", "complete"]);
}

#[tokio::test]
async fn the_token_is_read_again_when_it_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("token");
    std::fs::write(&file, "old\n").unwrap();
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = calls.clone();
    let renewed = file.clone();
    let server = Backend::start(Speaks::Http1, None, move |request, _| {
        counted.fetch_add(1, Ordering::Relaxed);
        match request.header("authorization") {
            "Bearer new" => Reply::http(200, &[], r#"{"metadata":{"resourceVersion":"1"},"items":[]}"#),
            _ => {
                std::fs::write(&renewed, "new\n").unwrap();
                Reply::http(401, &[], "{}")
            }
        }
    })
    .await;
    let client = ApiClient::new(&access(&server, BearerToken::File(file))).unwrap();
    let words = heard(&client, &WatchQuery::all("/api/v1/things"), 4).await;
    assert!(words[1].contains("401") && !words[1].contains("old"), "{}", words[1]);
    assert_eq!(words[3], "complete");
    let fixed = ApiClient::new(&access(&server, BearerToken::Fixed(SecretString::new("new")))).unwrap();
    assert_eq!(heard(&fixed, &WatchQuery::all("/api/v1/things"), 2).await, ["begin", "complete"]);
}

#[test]
fn a_kubeconfig_says_where_and_who() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("config");
    let text = "current-context: c\nclusters: [{name: k, cluster: {server: 'https://k:6443', certificate-authority-data: Q0E=}}]\n\
                contexts: [{name: c, context: {cluster: k, user: u, namespace: n}}]\nusers: [{name: u, user: {token: s3cret}}]\n";
    std::fs::write(&path, text).unwrap();
    let source = AccessSource::Kubeconfig { path: Some(path), context: None };
    let access = ClusterAccess::discover(&source, &ServiceAccountFiles::default()).unwrap();
    assert_eq!((&*access.server, access.namespace.as_deref()), ("https://k:6443", Some("n")));
    assert_eq!(access.token, BearerToken::Fixed(SecretString::new("s3cret")));
    assert!(access.tls.ca.is_some());
    assert!(!format!("{access:?}").contains("s3cret"));
}

#[test]
fn outside_of_a_pod_the_hint_is_one_that_helps() {
    if std::env::var_os("KUBERNETES_SERVICE_HOST").is_some() {
        return;
    }
    for source in [AccessSource::ServiceAccount, AccessSource::Anonymous] {
        let error = ClusterAccess::discover(&source, &ServiceAccountFiles::default()).unwrap_err().to_string();
        assert!(error.contains("auth_type: kubeConfig") && !error.contains("KUBECONFIG"), "{error}");
    }
}

/// A server that gives each connection one of these responses, and closes it.
async fn raw(answers: Vec<String>) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let server = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        for answer in answers {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut request = Vec::new();
            while !request.ends_with(b"\r\n\r\n") {
                request.push(stream.read_u8().await.unwrap());
            }
            stream.write_all(answer.as_bytes()).await.unwrap();
        }
    });
    server
}

#[tokio::test]
async fn a_watch_that_broke_off_is_resumed_and_says_so() {
    let answer = |length: usize, body: &str| {
        format!("HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}")
    };
    let list = r#"{"metadata":{"resourceVersion":"1"},"items":[]}"#;
    let event = format!("{{\"type\":\"ADDED\",\"object\":{}}}\n", thing("a", 2));
    let server = raw(vec![answer(list.len(), list), answer(100, "\n"), answer(event.len(), &event)]).await;
    let access = ClusterAccess { server, tls: ClientTls::default(), token: BearerToken::None, namespace: None };
    let words = heard(&ApiClient::new(&access).unwrap(), &WatchQuery::all("/api/v1/things"), 5).await;
    assert!(words[2].starts_with("failed: "), "{words:?}");
    assert_eq!(words[3..], ["resumed", "+a"]);
}
