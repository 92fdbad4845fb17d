//! Registrations on a real API server.

use k8s_openapi::api::admissionregistration::v1::WebhookClientConfig;
use kube::api::PostParams;
use kubewake_apiserver::server::{ApiServer, Options};
use serde_json::json;

use super::*;
use crate::stamping::selection::ObjectSelection;

fn config() -> WebhookClientConfig {
    WebhookClientConfig { url: Some("https://127.0.0.1:1/stamp".into()), ..WebhookClientConfig::default() }
}

fn mutating(client: Client) -> WebhookRegistration {
    let select = ObjectSelection::new(vec!["v1/configmaps".parse().unwrap()]);
    WebhookRegistration::new(
        client,
        "one",
        "tester",
        WebhookSet::Mutating(vec![select.webhook("one.example.com", config())]),
    )
}

/// A bundle that an API server accepts.
fn bundle(seconds: i64) -> String {
    use crate::certificates::{CertificateRing, CertificateTerms};
    let now = jiff::Timestamp::from_second(1_800_000_000 + seconds).unwrap();
    let names = ["localhost".to_owned()].into();
    CertificateRing::default().renew_if_due(&names, now, CertificateTerms::default()).unwrap().unwrap().bundle()
}

async fn change(registration: &WebhookRegistration, patch: Value) {
    let params = PatchParams::default();
    registration.api().patch("one", &params, &Patch::Merge(&patch)).await.unwrap();
}

#[tokio::test]
async fn it_is_written_once_and_again_only_when_somebody_changed_it() {
    let server = ApiServer::start(Options::default()).await.unwrap();
    let registration = mutating(server.client().unwrap());
    let mut live = None;
    let bundle = bundle(0);
    assert!(registration.ensure(&mut live, &bundle).await.unwrap());
    let written = live.clone();
    assert!(!registration.ensure(&mut live, &bundle).await.unwrap(), "it is as it should be");
    assert_eq!(live, written);

    let hook = live.as_ref().unwrap().data["webhooks"][0].clone();
    let with = |key: &str, value: Value| {
        let mut hook = hook.clone();
        hook[key] = value;
        json!({ "webhooks": [hook] })
    };
    for spoilt in [
        with("failurePolicy", json!("Fail")),
        with("timeoutSeconds", json!(30)),
        with("rules", json!([])),
        with("clientConfig", json!({ "url": "https://127.0.0.1:2/other" })),
        with("objectSelector", json!({ "matchLabels": { "a": "b" } })),
        with("namespaceSelector", json!({})),
        with("matchConditions", json!([])),
        json!({ "webhooks": [] }),
        json!({ "metadata": { "labels": null } }),
    ] {
        change(&registration, spoilt.clone()).await;
        assert!(registration.ensure(&mut live, &bundle).await.unwrap(), "{spoilt}");
        assert!(!registration.ensure(&mut live, &bundle).await.unwrap(), "{spoilt}");
        assert_eq!(live.as_ref().unwrap().data["webhooks"], json!([hook]), "{spoilt}");
    }
    let other = self::bundle(1);
    assert!(registration.ensure(&mut live, &other).await.unwrap(), "with another authority");
    server.stop().await;
}

#[tokio::test]
async fn what_others_add_stays_and_is_no_reason_to_write() {
    let server = ApiServer::start(Options::default()).await.unwrap();
    let registration = mutating(server.client().unwrap());
    let mut live = None;
    let bundle = bundle(0);
    registration.ensure(&mut live, &bundle).await.unwrap();
    let mut second = live.as_ref().unwrap().data["webhooks"][0].clone();
    second["name"] = json!("two.example.com");
    let hooks = json!([live.as_ref().unwrap().data["webhooks"][0], second]);
    change(&registration, json!({ "webhooks": hooks, "metadata": { "annotations": { "a": "b" } } })).await;
    assert!(!registration.ensure(&mut live, &bundle).await.unwrap());
    assert_eq!(live.unwrap().data["webhooks"].as_array().unwrap().len(), 2);
    server.stop().await;
}

#[tokio::test]
async fn a_validating_webhook_is_registered_alike_and_removed() {
    let server = ApiServer::start(Options::default()).await.unwrap();
    let hook = ValidatingWebhook {
        name: "check.example.com".into(),
        client_config: config(),
        side_effects: "None".into(),
        admission_review_versions: vec!["v1".into()],
        ..ValidatingWebhook::default()
    };
    let registration =
        WebhookRegistration::new(server.client().unwrap(), "one", "tester", WebhookSet::Validating(vec![hook]));
    let mut live = None;
    let bundle = bundle(0);
    assert!(registration.ensure(&mut live, &bundle).await.unwrap());
    assert!(!registration.ensure(&mut live, &bundle).await.unwrap());
    let seen = live.clone().unwrap();
    registration.remove(&seen).await.unwrap();
    assert!(registration.api().get_opt("one").await.unwrap().is_none());
    registration.remove(&seen).await.unwrap();

    // An object that was created anew under this name must not be removed.
    let mut other = seen.clone();
    other.metadata = ObjectMeta { name: Some("one".into()), ..ObjectMeta::default() };
    registration.api().create(&PostParams::default(), &other).await.unwrap();
    registration.remove(&seen).await.unwrap();
    assert!(registration.api().get_opt("one").await.unwrap().is_some());
    server.stop().await;
}

#[tokio::test]
async fn who_may_not_register_is_told() {
    let server = ApiServer::start(Options::default()).await.unwrap();
    let registration = mutating(server.client_as("stranger", &[]).unwrap());
    let error = registration.ensure(&mut None, &bundle(0)).await.unwrap_err();
    assert!(error.to_string().contains("stranger"), "{error}");
    server.stop().await;
}
