//! `kubewake webhook`: stamps the trace context of each write on the written object.

mod args;

use std::{
    process::ExitCode,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use anyhow::Context;
use k8s_openapi::api::admissionregistration::v1::MutatingWebhook;
use kube::{Api, Client};
use kubewake_trail::{Options, TelemetrySetup, TrailClock, error_chain};
use kubewake_webhook::{
    certificates::{CertificateStore, CertificateTerms},
    maintenance::{MaintenanceOptions, WebhookMaintenance},
    registration::{WebhookRegistration, WebhookSet, namespace_owner},
    server::WebhookServer,
    stamping::{PATH, StampWebhook, selection::CALL_TIMEOUT},
};
use tokio::{
    net::TcpListener,
    signal::unix::{SignalKind, signal},
};

pub(crate) use args::WebhookArgs;

use crate::{kube_client::new_client, logging};

/// Field manager of the registration.
const FIELD_MANAGER: &str = "kubewake-webhook";
/// How often the owner of the registration is looked up, and the delay in between: a new ClusterRole takes
/// effect with a short delay.
const OWNER_ATTEMPTS: u32 = 4;
const OWNER_RETRY_INTERVAL: Duration = Duration::from_millis(500);

pub(crate) async fn run(args: WebhookArgs) -> anyhow::Result<()> {
    let _logging = logging::start(&kubewake_config::model::LogsConfig::default());
    let mut terminate = signal(SignalKind::terminate())?;
    let listener =
        TcpListener::bind(args.listen).await.with_context(|| format!("failed to listen on {}", args.listen))?;
    let endpoint = args.webhook_endpoint(listener.local_addr()?)?;
    let client = new_client(args.kubeconfig.as_deref()).await?;

    let options = Options { keys: args.context_keys()?, trust: args.context_trust(), ..Options::default() };
    let (telemetry, _) =
        TelemetrySetup::new(FIELD_MANAGER).version(env!("CARGO_PKG_VERSION")).without_subscriber().start()?;
    if !telemetry.is_enabled() {
        tracing::warn!(
            "the webhook records no spans and starts no traces, because OTEL_EXPORTER_OTLP_ENDPOINT is not set; \
             objects get only trace context that the API server sends"
        );
    }
    let webhook = Arc::new(StampWebhook::new(telemetry.tracer(FIELD_MANAGER), options));
    let select = args.selected_resources();
    let hook = select.webhook(&format!("stamp.{}.kubewake.io", args.name), endpoint.client_config(PATH));
    let maintenance_options = MaintenanceOptions {
        store: certificate_store(&args, &client),
        terms: args
            .certificate_lifetime
            .map_or(Ok(CertificateTerms::default()), CertificateTerms::new)
            .context("--certificate-lifetime")?,
        names: endpoint.names(),
        registrations: vec![build_registration(&args, &client, hook).await?],
        clock: TrailClock::default(),
        counters: Arc::clone(webhook.counters().maintenance()),
    };
    let mut maintenance =
        WebhookMaintenance::start(maintenance_options).await.context("failed to start the webhook")?;
    let ready = Arc::new(AtomicBool::new(false));
    let server = WebhookServer::start(
        listener,
        maintenance.certificate_resolver().config()?,
        webhook.router(Arc::clone(&ready)),
    )?;
    maintenance.register().await.context("failed to start the webhook")?;
    ready.store(true, Ordering::Relaxed);
    println!("ready webhook on {}", server.address());

    tokio::select! {
        never = maintenance.run() => match never {},
        never = select.watch_served(&client, webhook.counters()) => match never {},
        _ = terminate.recv() => {}
        _ = tokio::signal::ctrl_c() => {}
    }
    ready.store(false, Ordering::Relaxed);
    tokio::time::sleep(args.shutdown_delay.unwrap_or_default()).await;
    if args.unregister_on_exit {
        maintenance.unregister().await;
    }
    server.stop(CALL_TIMEOUT).await;
    telemetry.shutdown();
    Ok(())
}

/// Builds the registration. Behind a Service, the Service's namespace owns it, so that both are deleted
/// together. The webhook works without permission to read that namespace, which older ClusterRoles lack: its
/// registration is then left behind.
async fn build_registration(
    args: &WebhookArgs,
    client: &Client,
    hook: MutatingWebhook,
) -> anyhow::Result<WebhookRegistration> {
    let registration =
        WebhookRegistration::new(client.clone(), &args.name, FIELD_MANAGER, WebhookSet::Mutating(vec![hook]));
    let Some(namespace) = args.service_namespace() else { return Ok(registration) };
    for attempt in 1..=OWNER_ATTEMPTS {
        let refused = match namespace_owner(client, namespace).await {
            Ok(owner) => return Ok(registration.owned_by(owner)),
            Err(kube::Error::Api(status)) if matches!(status.code, 403 | 404) => status,
            Err(error) => return Err(error).with_context(|| format!("failed to get namespace {namespace}")),
        };
        if attempt < OWNER_ATTEMPTS {
            tokio::time::sleep(OWNER_RETRY_INTERVAL).await;
            continue;
        }
        tracing::warn!(
            namespace,
            error = refused.message,
            "failed to get the namespace of the Service, so MutatingWebhookConfiguration {} remains when the namespace is \
             deleted: apply deploy/webhook again, or delete the configuration yourself",
            args.name
        );
    }
    Ok(registration)
}

/// Prints an error with its causes, without kube's repetitions and debug representations.
pub(crate) fn report_result(result: anyhow::Result<()>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {}", error_chain(error.as_ref()));
            ExitCode::FAILURE
        }
    }
}

fn certificate_store(args: &WebhookArgs, client: &Client) -> CertificateStore {
    match &args.certificate_secret {
        Some(secret) => {
            let api = Box::new(Api::namespaced(client.clone(), &secret.namespace));
            CertificateStore::Secret { api, name: secret.name.clone() }
        }
        None => CertificateStore::Memory,
    }
}
