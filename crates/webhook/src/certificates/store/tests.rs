//! A Secret that replicas share, on a real API server.

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

fn kept(api: &Api<Secret>) -> CertificateStore {
    CertificateStore::Secret { api: Box::new(api.clone()), name: NAME.to_owned() }
}

fn names() -> BTreeSet<String> {
    BTreeSet::from(["localhost".to_owned()])
}

fn terms() -> CertificateTerms {
    CertificateTerms::new(Duration::from_secs(90)).unwrap()
}

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + seconds).unwrap()
}

async fn renewed(keep: &CertificateStore, held: &CertificateRing, seconds: i64) -> CertificateRing {
    keep.load_or_renew(held, &names(), at(seconds), terms()).await.unwrap()
}

#[tokio::test]
async fn replicas_that_begin_together_have_the_same_certificates() {
    let (server, api) = server().await;
    let begin = || async {
        let keep = kept(&api);
        renewed(&keep, &CertificateRing::default(), 0).await
    };
    let (one, two, three) = tokio::join!(begin(), begin(), begin());
    assert!(one == two && two == three);
    assert_eq!(one.generations().len(), 1);
    server.stop().await;
}

#[tokio::test]
async fn of_replicas_that_renew_together_one_wins_and_nothing_else_is_written() {
    let (server, api) = server().await;
    let first = kept(&api);
    let second = kept(&api);
    let ring = renewed(&first, &CertificateRing::default(), 0).await;
    let revision = api.get(NAME).await.unwrap().resource_version();
    assert_eq!(renewed(&second, &CertificateRing::default(), 30).await, ring);
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
    let ring = renewed(&keep, &CertificateRing::default(), 0).await;
    api.delete(NAME, &DeleteParams::default()).await.unwrap();
    assert_eq!(renewed(&keep, &ring, 1).await, ring, "what is held is kept again");
    for bad in ["nonsense", r#"{"version":2,"generations":[]}"#, r#"{"version":1,"generations":[{}]}"#] {
        let patch = json!({ "stringData": { SECRET_KEY: bad, "other": "stays" } });
        api.patch(NAME, &PatchParams::default(), &Patch::Merge(&patch)).await.unwrap();
        assert_eq!(renewed(&keep, &ring, 1).await, ring, "{bad}");
        let data = api.get(NAME).await.unwrap().data.unwrap();
        assert_eq!(data["other"].0, b"stays");
        assert_ne!(data[SECRET_KEY].0, bad.as_bytes());
    }
    server.stop().await;
}

#[tokio::test]
async fn who_may_not_is_told_so_and_nothing_of_the_secret() {
    let (server, api) = server().await;
    renewed(&kept(&api), &CertificateRing::default(), 0).await;
    let stranger = Api::default_namespaced(server.client_as("stranger", &[]).unwrap());
    let error = kept(&stranger).load_or_renew(&CertificateRing::default(), &names(), at(0), terms()).await.unwrap_err();
    assert!(matches!(error, CertificateStoreError::Read { .. }), "{error}");
    assert!(!format!("{error:?}").contains("PRIVATE"));
    server.stop().await;
}
