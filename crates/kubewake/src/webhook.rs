//! `kubewake webhook`: trace context on objects, whoever writes them.

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
use kubewake_trail::{
    Clock, Options, Setup, in_words,
    webhook::{
        PATH, Webhook,
        certificates::{Keep, Terms},
        registration::{Hooks, Registration, namespace_owner},
        serve::Server,
        upkeep::{Plan, Upkeep},
    },
};
use tokio::{
    net::TcpListener,
    signal::unix::{SignalKind, signal},
};

pub(crate) use args::Args;

use crate::{client::client, logging};

/// Who owns the fields of the registration.
const MANAGER: &str = "kubewake-webhook";
/// How often the owner of the registration is asked for, and the pause in between: API servers learn of a new ClusterRole a moment after it was made.
const OWNER_ATTEMPTS: u32 = 4;
const OWNER_PAUSE: Duration = Duration::from_millis(500);

pub(crate) async fn run(args: Args) -> anyhow::Result<()> {
    let _logging = logging::start(&kubewake_config::model::Logs::default());
    let mut terminate = signal(SignalKind::terminate())?;
    let listener = TcpListener::bind(args.listen).await.with_context(|| format!("cannot listen on {}", args.listen))?;
    let endpoint = args.endpoint(listener.local_addr()?)?;
    let client = client(args.kubeconfig.as_deref()).await?;

    let options = Options { keys: args.keys()?, trust: args.trust(), ..Options::default() };
    let (telemetry, _) = Setup::new(MANAGER).version(env!("CARGO_PKG_VERSION")).without_subscriber().start()?;
    let webhook = Arc::new(Webhook::new(telemetry.tracer(MANAGER), options));
    let select = args.select();
    let hook = select.webhook(&format!("stamp.{}.kubewake.io", args.name), endpoint.client_config(PATH));
    let plan = Plan {
        keep: keep(&args, &client),
        terms: args.certificate_lifetime.map_or(Ok(Terms::default()), Terms::new).context("--certificate-lifetime")?,
        names: endpoint.names(),
        registrations: vec![registration(&args, &client, hook).await?],
        clock: Clock::default(),
        counters: Arc::clone(webhook.counters().upkeep()),
    };
    let mut upkeep = Upkeep::begin(plan).await.context("the webhook does not start")?;
    let ready = Arc::new(AtomicBool::new(false));
    let server = Server::start(listener, upkeep.serving().config()?, webhook.router(Arc::clone(&ready)))?;
    upkeep.register().await.context("the webhook does not start")?;
    ready.store(true, Ordering::Relaxed);
    println!("ready webhook on {}", server.address());

    tokio::select! {
        never = upkeep.run() => match never {},
        never = select.watch_served(&client, webhook.counters()) => match never {},
        _ = terminate.recv() => {}
        _ = tokio::signal::ctrl_c() => {}
    }
    ready.store(false, Ordering::Relaxed);
    tokio::time::sleep(args.shutdown_delay.unwrap_or_default()).await;
    if args.unregister_on_exit {
        upkeep.unregister().await;
    }
    server.stop().await;
    telemetry.shutdown();
    Ok(())
}

/// Behind a Service, the registration belongs to the Service's namespace and is deleted with it. The webhook works without the right to
/// read that namespace, as an older ClusterRole has it: its registration is just not deleted then.
async fn registration(args: &Args, client: &Client, hook: MutatingWebhook) -> anyhow::Result<Registration> {
    let registration = Registration::new(client.clone(), &args.name, MANAGER, Hooks::Mutating(vec![hook]));
    let Some(namespace) = args.service_namespace() else { return Ok(registration) };
    for attempt in 1..=OWNER_ATTEMPTS {
        let refused = match namespace_owner(client, namespace).await {
            Ok(owner) => return Ok(registration.owned_by(owner)),
            Err(kube::Error::Api(status)) if matches!(status.code, 403 | 404) => status,
            Err(error) => return Err(error).with_context(|| format!("failed to get namespace {namespace}")),
        };
        if attempt < OWNER_ATTEMPTS {
            tokio::time::sleep(OWNER_PAUSE).await;
            continue;
        }
        tracing::warn!(
            namespace,
            error = refused.message,
            "failed to get the namespace of the Service, so that MutatingWebhookConfiguration {} is left behind when the namespace is \
             deleted: apply deploy/webhook again, or delete the configuration by hand",
            args.name
        );
    }
    Ok(registration)
}

/// Says what went wrong in words: kube's own errors repeat themselves, and show what the API server answered as Rust sees it.
pub(crate) fn report(result: anyhow::Result<()>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {}", in_words(error.as_ref()));
            ExitCode::FAILURE
        }
    }
}

fn keep(args: &Args, client: &Client) -> Keep {
    match &args.certificate_secret {
        Some(secret) => {
            let api = Box::new(Api::namespaced(client.clone(), &secret.namespace));
            Keep::Secret { api, name: secret.name.clone() }
        }
        None => Keep::Memory,
    }
}
