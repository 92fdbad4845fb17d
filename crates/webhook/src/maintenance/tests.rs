//! Certificates and registrations over time, on a real API server.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex},
    time::Duration,
};

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::{api::admissionregistration::v1::WebhookClientConfig, api::core::v1::Secret};
use kube::{
    Api,
    api::{DeleteParams, Patch, PatchParams},
};
use kubewake_apiserver::server::{ApiServer, Options};
use serde_json::json;

use super::*;
use crate::{registration::WebhookSet, stamping::selection::ObjectSelection};

/// A clock that the test sets.
#[derive(Clone)]
struct Hands(Arc<Mutex<Timestamp>>);

impl Hands {
    fn new() -> Self {
        Self(Arc::new(Mutex::new(Timestamp::now())))
    }

    fn clock(&self) -> TrailClock {
        let hands = self.clone();
        TrailClock::new(move || (*hands.0.lock().unwrap()).into())
    }

    fn turn(&self, seconds: i64) {
        let mut now = self.0.lock().unwrap();
        *now = now.checked_add(SignedDuration::from_secs(seconds)).unwrap();
    }
}

async fn begin(server: &ApiServer, hands: &Hands, keep: CertificateStore) -> WebhookMaintenance {
    begin_with(server, hands, keep, "v1/configmaps").await
}

/// Starts a webhook that selects these resources.
async fn begin_with(server: &ApiServer, hands: &Hands, keep: CertificateStore, selected: &str) -> WebhookMaintenance {
    let url = WebhookClientConfig { url: Some("https://127.0.0.1:1/stamp".into()), ..WebhookClientConfig::default() };
    let hook = ObjectSelection::new(vec![selected.parse().unwrap()]).webhook("one.example.com", url);
    let registration =
        WebhookRegistration::new(server.client().unwrap(), "one", "tester", WebhookSet::Mutating(vec![hook]));
    let plan = MaintenanceOptions {
        store: keep,
        // The next certificate is issued after twenty minutes, and served after two and a half more.
        terms: CertificateTerms::new(Duration::from_secs(1800)).unwrap(),
        names: BTreeSet::from(["127.0.0.1".to_owned()]),
        registrations: vec![registration],
        clock: hands.clock(),
        counters: Arc::default(),
    };
    let mut maintenance = WebhookMaintenance::start(plan).await.unwrap();
    maintenance.register().await.unwrap();
    maintenance
}

fn registered(maintenance: &WebhookMaintenance) -> String {
    let bundle = &maintenance.registrations[0].live.as_ref().unwrap().data["webhooks"][0]["clientConfig"]["caBundle"];
    let bytes: k8s_openapi::ByteString = serde_json::from_value(bundle.clone()).unwrap();
    String::from_utf8(bytes.0).unwrap()
}

fn authorities(maintenance: &WebhookMaintenance) -> Vec<String> {
    maintenance.ring.generations().iter().map(|one| one.authority().to_owned()).collect()
}

#[tokio::test]
async fn a_new_certificate_is_announced_before_it_is_shown_and_the_old_one_goes_last() {
    let server = ApiServer::start(Options::default()).await.unwrap();
    let hands = Hands::new();
    let mut maintenance = begin(&server, &hands, CertificateStore::Memory).await;
    let first = maintenance.shown_authority.clone();
    assert_eq!(registered(&maintenance), first);
    hands.turn(1199);
    assert_eq!((maintenance.run_pass().await, authorities(&maintenance).len()), (PassOutcome::Unchanged, 1));
    hands.turn(2);
    assert_eq!(maintenance.run_pass().await, PassOutcome::Repaired);
    let [old, new] = &authorities(&maintenance)[..] else { panic!() };
    assert_eq!(registered(&maintenance), format!("{old}{new}"));
    assert_eq!((&maintenance.shown_authority, old), (&first, &first), "the new one is not known for long enough");
    assert!(maintenance.time_until_due() <= Duration::from_secs(150));
    hands.turn(151);
    assert_eq!(maintenance.run_pass().await, PassOutcome::Unchanged);
    assert_eq!(&maintenance.shown_authority, new);
    assert_eq!(registered(&maintenance), format!("{old}{new}"));
    hands.turn(600);
    assert_eq!(maintenance.run_pass().await, PassOutcome::Repaired);
    assert_eq!(&registered(&maintenance), new, "the old one has ended");
    server.stop().await;
}

#[tokio::test]
async fn a_certificate_that_cannot_be_announced_is_not_shown_while_the_old_one_lives() {
    let server = ApiServer::start(Options::default()).await.unwrap();
    let hands = Hands::new();
    let mut maintenance = begin(&server, &hands, CertificateStore::Memory).await;
    let first = maintenance.shown_authority.clone();
    server.stop().await;
    hands.turn(1201);
    assert_eq!(maintenance.run_pass().await, PassOutcome::Failed);
    hands.turn(500);
    assert_eq!(maintenance.run_pass().await, PassOutcome::Failed);
    assert_eq!((authorities(&maintenance).len(), &maintenance.shown_authority), (2, &first));
    hands.turn(100);
    assert_eq!(maintenance.run_pass().await, PassOutcome::Failed);
    assert_ne!(maintenance.shown_authority, first, "an old one that has ended is worse than one that nobody knows");
    assert_eq!(maintenance.counters.times(MaintenanceEvent::RegistrationFailed), 3);
}

#[tokio::test]
async fn replicas_follow_each_other_and_do_not_write_twice() {
    let server = ApiServer::start(Options::default()).await.unwrap();
    let hands = Hands::new();
    let api: Api<Secret> = Api::default_namespaced(server.client().unwrap());
    let keep = || CertificateStore::Secret { api: Box::new(api.clone()), name: "certificates".into() };
    let mut one = begin(&server, &hands, keep()).await;
    let mut two = begin(&server, &hands, keep()).await;
    assert_eq!(one.shown_authority, two.shown_authority);
    hands.turn(1201);
    assert_eq!(one.run_pass().await, PassOutcome::Repaired);
    // The other process sees a registration that says more than it knows, and reads the Secret before it
    // writes.
    let live = two.registrations[0].registration.api().get_opt("one").await.unwrap();
    two.observe_registration(0, live);
    assert_eq!(two.run_pass().await, PassOutcome::Unchanged);
    assert_eq!(authorities(&one), authorities(&two));
    server.stop().await;
}

/// Waits until the maintenance has reached a condition.
async fn eventually(maintenance: &mut WebhookMaintenance, holds: impl AsyncFn() -> bool) {
    let look = async {
        while !holds().await {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::select! {
        _ = maintenance.run() => {}
        looked = tokio::time::timeout(Duration::from_secs(60), look) => looked.unwrap(),
    }
}

#[tokio::test]
async fn what_somebody_changes_or_deletes_is_there_again() {
    let server = ApiServer::start(Options::default()).await.unwrap();
    let hands = Hands::new();
    let mut maintenance = begin(&server, &hands, CertificateStore::Memory).await;
    let api = maintenance.registrations[0].registration.api().clone();
    let policy = async || match api.get_opt("one").await.unwrap() {
        Some(object) => object.data["webhooks"][0]["failurePolicy"] == "Ignore",
        None => false,
    };
    let mut hook = api.get("one").await.unwrap().data["webhooks"][0].clone();
    hook["failurePolicy"] = json!("Fail");
    let patch = Patch::Merge(json!({ "webhooks": [hook] }));
    api.patch("one", &PatchParams::default(), &patch).await.unwrap();
    eventually(&mut maintenance, &policy).await;
    api.delete("one", &DeleteParams::default()).await.unwrap();
    eventually(&mut maintenance, &policy).await;
    maintenance.unregister().await;
    assert!(api.get_opt("one").await.unwrap().is_none());
    server.stop().await;
}

#[tokio::test]
async fn what_an_api_server_makes_of_it_is_written_once() {
    let server = ApiServer::start(Options::default()).await.unwrap();
    let hands = Hands::new();
    let mut maintenance = begin(&server, &hands, CertificateStore::Memory).await;
    // The API server drops an empty rule, so the live object never has the desired state.
    let url = WebhookClientConfig { url: Some("https://127.0.0.1:1/".into()), ..WebhookClientConfig::default() };
    let mut hook = ObjectSelection::new(vec!["v1/configmaps".parse().unwrap()]).webhook("one.example.com", url);
    hook.namespace_selector.get_or_insert_default().match_labels = Some([].into());
    let registration =
        WebhookRegistration::new(server.client().unwrap(), "two", "tester", WebhookSet::Mutating(vec![hook]));
    maintenance.registrations.push(RegistrationState::new(registration));
    assert_eq!(maintenance.run_pass().await, PassOutcome::Repaired);
    assert_eq!(maintenance.run_pass().await, PassOutcome::Unchanged);
    server.stop().await;
}

#[tokio::test]
async fn two_webhooks_of_one_name_are_told_of_each_other() {
    let server = ApiServer::start(Options::default()).await.unwrap();
    let hands = Hands::new();
    let mut one = begin(&server, &hands, CertificateStore::Memory).await;
    assert_eq!((one.counters.times(MaintenanceEvent::Registered), one.counters.is_registered()), (1, true));
    let two = begin(&server, &hands, CertificateStore::Memory).await;
    assert_eq!(two.counters.times(MaintenanceEvent::Contended), 0, "one of yesterday is no other");
    let live = one.registrations[0].registration.get().await.unwrap();
    one.observe_registration(0, live);
    let renewed = one.registrations[0].renew(&one.ring.bundle()).await.unwrap();
    let differs = "webhooks[one.example.com].clientConfig.caBundle".to_owned();
    assert_eq!(renewed, RenewalOutcome::Contended { other: "https://127.0.0.1:1/stamp".to_owned(), differs });
    log_renewal(&one.counters, "MutatingWebhookConfiguration", "one", renewed);
    assert_eq!(one.counters.times(MaintenanceEvent::Contended), 1);
    server.stop().await;
}

#[tokio::test]
async fn that_another_webhook_holds_it_is_noted_when_it_is_seen_and_it_is_left_alone_at_the_end() {
    let server = ApiServer::start(Options::default()).await.unwrap();
    let hands = Hands::new();
    let mut one = begin(&server, &hands, CertificateStore::Memory).await;
    let two = begin(&server, &hands, CertificateStore::Memory).await;
    let live = one.registrations[0].registration.get().await.unwrap();
    one.observe_registration(0, live);
    assert!(!one.counters.is_registered() && one.counters.is_lost());
    one.unregister().await;
    assert_eq!(two.registrations[0].registration.get().await.unwrap(), two.registrations[0].live);
    one.registrations[0].lost_since = Instant::now().checked_sub(RETRY_DELAY_RANGE.1);
    assert_eq!(one.run_pass().await, PassOutcome::Repaired);
    assert!(one.counters.is_registered() && !one.counters.is_lost());
    one.unregister().await;
    assert!(one.registrations[0].registration.get().await.unwrap().is_none());
    server.stop().await;
}

#[tokio::test]
async fn in_a_rollout_the_one_to_come_holds_it_for_long_enough_to_be_ready() {
    let server = ApiServer::start(Options::default()).await.unwrap();
    let hands = Hands::new();
    let api: Api<Secret> = Api::default_namespaced(server.client().unwrap());
    let keep = || CertificateStore::Secret { api: Box::new(api.clone()), name: "certificates".into() };
    drop(begin(&server, &hands, keep()).await);
    // It found a registration written by another process, as most replicas do.
    let mut old = begin(&server, &hands, keep()).await;
    let new = begin_with(&server, &hands, keep(), "v1/secrets").await;
    let taken = Instant::now();
    let live = new.registrations[0].live.clone();
    assert!(old.observe_registration(0, live.clone()), "it is taken");
    assert!(!old.observe_registration(0, live), "and not again");
    assert_eq!(old.run_pass().await, PassOutcome::Unchanged);
    // Kubelets probe every ten seconds.
    assert!(old.next_repair().unwrap() >= taken + Duration::from_secs(30));
    assert!(new.counters.is_registered() && !old.counters.is_registered());
    server.stop().await;
}

/// Changes the registration as this manager, and waits until the change is seen.
async fn change(maintenance: &mut WebhookMaintenance, manager: &str) {
    let api = maintenance.registrations[0].registration.api().clone();
    let mut hook = api.get("one").await.unwrap().data["webhooks"][0].clone();
    hook["failurePolicy"] = json!("Fail");
    let params = PatchParams { field_manager: Some(manager.into()), ..PatchParams::default() };
    let live = api.patch("one", &params, &Patch::Merge(json!({ "webhooks": [hook] }))).await.unwrap();
    maintenance.observe_registration(0, Some(live));
}

#[tokio::test]
async fn who_changes_it_once_is_answered_at_once_whoever_fights_for_it() {
    let server = ApiServer::start(Options::default()).await.unwrap();
    let hands = Hands::new();
    let mut one = begin(&server, &hands, CertificateStore::Memory).await;
    let two = begin(&server, &hands, CertificateStore::Memory).await;
    let taken = Instant::now();
    one.observe_registration(0, two.registrations[0].live.clone());
    assert!(one.next_repair().unwrap() >= taken + RETRY_DELAY_RANGE.1, "another webhook is left alone with it");
    assert_eq!(one.run_pass().await, PassOutcome::Unchanged);
    one.registrations[0].registration.write(&one.ring.bundle()).await.unwrap();

    change(&mut one, "kubectl-edit").await;
    assert!(one.next_repair().unwrap() <= Instant::now());
    assert_eq!(one.run_pass().await, PassOutcome::Repaired);
    server.stop().await;
}

#[tokio::test]
async fn who_changes_it_again_and_again_is_answered_later_each_time() {
    let server = ApiServer::start(Options::default()).await.unwrap();
    let hands = Hands::new();
    let mut one = begin(&server, &hands, CertificateStore::Memory).await;
    let mut answered = Instant::now();
    for pause in [0, 500, 1000, 2000, 4000, 8000, 16_000, 30_000, 30_000] {
        change(&mut one, "somebody").await;
        assert!(one.next_repair().unwrap() >= answered + Duration::from_millis(pause), "{pause}");
        // Whether it is due or not.
        answered = Instant::now();
        one.registrations[0].renew(&one.ring.bundle()).await.unwrap();
    }
    change(&mut one, "somebody-else").await;
    assert!(one.next_repair().unwrap() <= Instant::now());
    server.stop().await;
}

#[tokio::test]
async fn a_person_who_changes_it_is_no_other_webhook() {
    let server = ApiServer::start(Options::default()).await.unwrap();
    let hands = Hands::new();
    let mut maintenance = begin(&server, &hands, CertificateStore::Memory).await;
    change(&mut maintenance, "kubectl-edit").await;
    assert_eq!(maintenance.run_pass().await, PassOutcome::Repaired);
    let counters = &maintenance.counters;
    assert_eq!((counters.times(MaintenanceEvent::Registered), counters.times(MaintenanceEvent::Contended)), (2, 0));
    server.stop().await;
}
