//! A Secret that replicas share, on an API server.

use std::time::Duration;

use kube::{
    ResourceExt as _,
    api::{DeleteParams, Patch, PatchParams},
};
use kubewake_apiserver::server::{ApiServer, Options};
use serde_json::json;

use super::*;

const NAME: &str = "certificates";

async fn server() -> (ApiServer, Api<Secret>) {
    let server = ApiServer::start(Options::default()).await.unwrap();
    let api = Api::default_namespaced(server.client().unwrap());
    (server, api)
}

fn kept(api: &Api<Secret>) -> Keep {
    Keep::Secret { api: Box::new(api.clone()), name: NAME.to_owned() }
}

fn names() -> BTreeSet<String> {
    BTreeSet::from(["localhost".to_owned()])
}

fn terms() -> Terms {
    Terms::new(Duration::from_secs(90)).unwrap()
}

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + seconds).unwrap()
}

async fn renewed(keep: &Keep, held: &Ring, seconds: i64) -> Ring {
    keep.renewed(held, &names(), at(seconds), terms()).await.unwrap()
}

#[tokio::test]
async fn replicas_that_begin_together_have_the_same_certificates() {
    let (server, api) = server().await;
    let begin = || async {
        let keep = kept(&api);
        renewed(&keep, &Ring::default(), 0).await
    };
    let (one, two, three) = tokio::join!(begin(), begin(), begin());
    assert!(one == two && two == three);
    assert_eq!(one.generations().len(), 1);
    server.stop().await;
}

#[tokio::test]
async fn of_replicas_that_renew_together_one_wins_and_nothing_else_is_written() {
    let (server, api) = server().await;
    let (first, second) = (kept(&api), kept(&api));
    let ring = renewed(&first, &Ring::default(), 0).await;
    let revision = api.get(NAME).await.unwrap().resource_version();
    assert_eq!(renewed(&second, &Ring::default(), 30).await, ring);
    assert_eq!(api.get(NAME).await.unwrap().resource_version(), revision, "nothing was due");
    let (one, two) = tokio::join!(renewed(&first, &ring, 61), renewed(&second, &ring, 61));
    assert_eq!(one, two);
    assert_eq!(one.generations().len(), 2);
    server.stop().await;
}

#[tokio::test]
async fn a_secret_that_was_deleted_or_spoilt_is_written_again_and_others_entries_stay() {
    let (server, api) = server().await;
    let keep = kept(&api);
    let ring = renewed(&keep, &Ring::default(), 0).await;
    api.delete(NAME, &DeleteParams::default()).await.unwrap();
    assert_eq!(renewed(&keep, &ring, 1).await, ring, "what is held is kept again");
    for bad in ["nonsense", r#"{"version":2,"generations":[]}"#, r#"{"version":1,"generations":[{}]}"#] {
        let patch = json!({ "stringData": { ENTRY: bad, "other": "stays" } });
        api.patch(NAME, &PatchParams::default(), &Patch::Merge(&patch)).await.unwrap();
        assert_eq!(renewed(&keep, &ring, 1).await, ring, "{bad}");
        let data = api.get(NAME).await.unwrap().data.unwrap();
        assert_eq!(data["other"].0, b"stays");
        assert_ne!(data[ENTRY].0, bad.as_bytes());
    }
    server.stop().await;
}

#[tokio::test]
async fn who_may_not_is_told_so_and_nothing_of_the_secret() {
    let (server, api) = server().await;
    renewed(&kept(&api), &Ring::default(), 0).await;
    let stranger = Api::default_namespaced(server.client_as("stranger", &[]).unwrap());
    let error = kept(&stranger).renewed(&Ring::default(), &names(), at(0), terms()).await.unwrap_err();
    assert!(matches!(error, KeepError::Read { .. }), "{error}");
    assert!(!format!("{error:?}").contains("PRIVATE"));
    server.stop().await;
}
