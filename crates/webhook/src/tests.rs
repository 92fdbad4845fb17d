//! All pieces together, as a validating webhook of another program: behind a Service, with its own routes.

use std::{net::Ipv4Addr, sync::Arc, time::Duration};

use axum::{
    Router,
    body::Body,
    extract::State,
    response::{IntoResponse as _, Response},
    routing::post,
};
use http::{Request, header};
use k8s_openapi::api::{
    admissionregistration::v1::{RuleWithOperations, ValidatingWebhook},
    core::v1::ConfigMap,
};
use kube::{Api, api::PostParams};
use kubewake_apiserver::{
    client::{DialAddress, ServiceAddressResolver},
    server::{ApiServer, Options},
};
use kubewake_trail::TrailClock;
use tokio::net::TcpListener;

use crate::{
    body_reader::BodyReader,
    certificates::{CertificateStore, CertificateTerms},
    counters::MaintenanceEvent,
    maintenance::{MaintenanceOptions, WebhookMaintenance},
    registration::{WebhookRegistration, WebhookSet},
    review::{ReviewDecision, ReviewRequest},
    server::WebhookServer,
    target::WebhookTarget,
};

/// The API server's default, as the registration sets none.
const CALL_TIMEOUT: Duration = Duration::from_secs(10);

/// A cluster whose only Service leads to a port of this machine.
#[derive(Debug)]
struct OneService(u16);

impl ServiceAddressResolver for OneService {
    fn resolve(&self, namespace: &str, name: &str, port: u16) -> Result<DialAddress, String> {
        match (namespace, name, port) {
            ("operators", "checks", 8443) => Ok(DialAddress::Tcp(Ipv4Addr::LOCALHOST.to_string(), self.0)),
            _ => Err(format!("there is no {namespace}/{name}:{port}")),
        }
    }
}

/// Refuses empty ConfigMaps, and ConfigMaps with data unless an administrator creates them.
async fn check(State(body_reader): State<BodyReader>, request: Request<Body>) -> Response {
    let (head, body) = request.into_parts();
    let held = match body_reader.read(&head.headers, body).await {
        Ok(held) => held,
        Err(unread) => return unread.into_response(),
    };
    let review = ReviewRequest::parse(&held.body).unwrap();
    let groups = review.user_info.groups.clone().unwrap_or_default();
    let verdict = match review.object.get("data") {
        None => ReviewDecision::invalid("data: it is empty"),
        Some(_) if groups.iter().any(|group| group == "system:masters") => ReviewDecision::pass(),
        Some(_) => ReviewDecision::forbidden(format!("{:?} may not", review.user_info.username.unwrap_or_default())),
    };
    ([(header::CONTENT_TYPE, "application/json")], verdict.to_response_body(&review.uid, &[])).into_response()
}

fn hook(endpoint: &WebhookTarget) -> ValidatingWebhook {
    let all = |text: &str| Some(vec![text.to_owned()]);
    let rule = RuleWithOperations {
        api_groups: all(""),
        api_versions: all("v1"),
        resources: all("configmaps"),
        operations: all("CREATE"),
        scope: None,
    };
    ValidatingWebhook {
        name: "configmaps.checks.example.com".into(),
        client_config: endpoint.client_config("/check"),
        rules: Some(vec![rule]),
        failure_policy: Some("Fail".into()),
        side_effects: "None".into(),
        admission_review_versions: vec!["v1".into()],
        ..ValidatingWebhook::default()
    }
}

#[tokio::test]
async fn another_webhook_validates_with_the_same_pieces() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let services: Arc<dyn ServiceAddressResolver> = Arc::new(OneService(listener.local_addr().unwrap().port()));
    let cluster = ApiServer::start(Options { services: Some(services), ..Options::default() }).await.unwrap();
    let endpoint = WebhookTarget::from_service("operators", "checks", 8443);
    let hooks = WebhookSet::Validating(vec![hook(&endpoint)]);
    let maintenance_options = MaintenanceOptions {
        store: CertificateStore::Memory,
        terms: CertificateTerms::default(),
        names: endpoint.names(),
        registrations: vec![WebhookRegistration::new(cluster.client().unwrap(), "checks", "operator", hooks)],
        clock: TrailClock::default(),
        counters: Arc::default(),
    };
    let counters = Arc::clone(&maintenance_options.counters);
    let mut maintenance = WebhookMaintenance::start(maintenance_options).await.unwrap();
    let router = Router::new().route("/check", post(check)).with_state(BodyReader::new(CALL_TIMEOUT));
    let server = WebhookServer::start(listener, maintenance.certificate_resolver().config().unwrap(), router).unwrap();
    maintenance.register().await.unwrap();
    assert_eq!((counters.times(MaintenanceEvent::Registered), counters.is_registered()), (1, true));
    assert!(counters.render_metrics("operator_webhook").contains("operator_webhook_registered 1\n"));

    let object = |name: &str, data: &[(&str, &str)]| {
        let data = data.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        let mut object = ConfigMap { data: Some(data), ..ConfigMap::default() };
        object.metadata.name = Some(name.to_owned());
        object
    };
    let maps: Api<ConfigMap> = Api::default_namespaced(cluster.client().unwrap());
    // A registration comes into force shortly after it is created.
    let refused = loop {
        match maps.create(&PostParams { dry_run: true, ..PostParams::default() }, &object("none", &[])).await {
            Ok(_) => tokio::task::yield_now().await,
            Err(kube::Error::Api(status)) => break status,
            Err(error) => panic!("{error}"),
        }
    };
    assert_eq!((refused.code, &*refused.reason), (422, "Invalid"), "{refused:?}");
    assert!(refused.message.ends_with("denied the request: data: it is empty"), "{}", refused.message);
    maps.create(&PostParams::default(), &object("some", &[("a", "b")])).await.unwrap();
    maintenance.unregister().await;
    server.stop(CALL_TIMEOUT).await;
    cluster.stop().await;
}
