//! Starts all components, step by step.

use std::{
    future::Future,
    io::Write as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};

use anyhow::{Context, bail};
use kubewake_apiserver::server;
use kubewake_config::model::{LogLevel, LogsConfig};
use kubewake_node::{
    cluster::ClusterOptions,
    images::{ImageEntrypoint, ImageStore},
};
use kubewake_release::ReleaseImage;
use kubewake_viewer::Viewer;
use tokio::{sync::watch, time::timeout};

use super::{
    UpArgs,
    components::RunningComponents,
    install,
    instance_record::InstanceRecord,
    pipeline_events,
    ports::{ListenAddresses, is_free},
    progress::StartProgress,
    ready_message::ReadyMessage,
    restarts,
    state_directory::{self, StateDirectory},
};
use crate::{
    cluster,
    demo::{self, CompletedTrace, DemoClients, DemoSample},
    logging,
    manifest_applier::{self, ManifestApplier},
    output::units::format_count,
};

/// Field manager of all applied objects.
const FIELD_MANAGER: &str = "kubewake-up";
/// Only a broken system exceeds this.
const STEP_TIMEOUT: Duration = Duration::from_secs(120);
/// Ctrl-C should take effect soon, and a collector needs no longer to deliver its queue to the viewer beside
/// it.
const POD_GRACE_PERIOD: Duration = Duration::from_secs(2);
/// Another process may take a port between the check and its use; hardly more often than this.
const MAX_START_ATTEMPTS: u32 = 5;

/// Starts everything, prints the message, and reports restarts from then on. Returns only when something fails.
pub(super) async fn start_and_watch(
    args: &UpArgs,
    folder: &StateDirectory,
    parts: &mut RunningComponents,
    progress: StartProgress,
    level: &watch::Sender<LogsConfig>,
) -> anyhow::Result<()> {
    let kubeconfig = kubeconfig_path(args, folder)?;
    let starting = SystemStart { args, folder, progress, kubeconfig: &kubeconfig };
    let wanted = args.requested_addresses(folder.load_ports()?);
    let ports = starting.start_cluster(wanted, parts).await?;
    let ports = starting.start_viewer(ports, parts).await?;
    ports.moved_from(wanted).iter().for_each(|moved| {
        progress.print_note(&format!("  {} is in use: {} uses {}", moved.from, moved.what, moved.to));
    });
    folder.save_ports(&ports)?;
    let clients = DemoClients::new(crate::kube_client::load_config(Some(&kubeconfig)).await?, Some(&kubeconfig))?;
    let notice = InstanceRecord::new(&ports, &kubeconfig);
    let sample = starting.start_system(&clients, &ports, &notice).await?;
    // Without the record, other commands need arguments to find this instance.
    let _posted = notice.publish().inspect_err(|error| progress.print_note(&format!("  {error:#}"))).ok();
    let screen = ReadyMessage { ports: &ports, kubeconfig: &kubeconfig, sample: sample.as_ref() };
    // A closed standard output is no failure: the files have the same information.
    let _ = std::io::stdout().write_all(screen.render().as_bytes());
    level.send_replace(logging::logs_at_level(LogLevel::Warn));
    if args.open {
        open_browser(&notice.page, progress);
    }
    tokio::select! {
        () = restarts::report_restarts(clients.quiet.clone(), |text| progress.print_note(text)) => {}
        () = pipeline_events::report_changes(clients.quiet.clone(), |text| progress.print_note(text)) => {}
    }
    bail!("the watch of the cluster ended")
}

fn kubeconfig_path(args: &UpArgs, folder: &StateDirectory) -> anyhow::Result<PathBuf> {
    let named = args.kubeconfig.as_deref().map(std::path::absolute).transpose()?;
    Ok(named.unwrap_or_else(|| folder.kubeconfig_path()))
}

struct SystemStart<'a> {
    args: &'a UpArgs,
    folder: &'a StateDirectory,
    progress: StartProgress,
    kubeconfig: &'a Path,
}

impl SystemStart<'_> {
    async fn start_cluster(
        &self,
        wanted: ListenAddresses,
        parts: &mut RunningComponents,
    ) -> anyhow::Result<ListenAddresses> {
        let step = self.progress.begin_step("cluster");
        state_directory::write_atomically(&self.folder.tracing_config_path(), install::TRACING_CONFIGURATION)
            .context("failed to write the tracing configuration")?;
        let mut tries = 0;
        loop {
            let mut ports = choose_free_addresses(wanted)?;
            match parts.start_cluster(self.cluster_options(&ports)?).await {
                Ok(cluster) => {
                    ports.api = cluster.api().address();
                    let written = cluster.api().kubeconfig().write(self.kubeconfig);
                    written.with_context(|| format!("failed to write {}", self.kubeconfig.display()))?;
                    step.succeed(&format!("https://{}, {}", ports.api, format_count(self.args.nodes.into(), "node")));
                    return Ok(ports);
                }
                Err(_) if tries < MAX_START_ATTEMPTS && !is_free(ports.api) => tries += 1,
                Err(error) => return Err(error.context("failed to start the cluster")),
            }
        }
    }

    async fn start_viewer(
        &self,
        mut ports: ListenAddresses,
        parts: &mut RunningComponents,
    ) -> anyhow::Result<ListenAddresses> {
        let step = self.progress.begin_step("viewer");
        let mut tries = 0;
        loop {
            let options = kubewake_viewer::ViewerOptions {
                listen: ports.page,
                otlp_grpc: Some(ports.otlp),
                otlp_http: Some(ports.otlp_http),
                data_dir: self.folder.traces_dir(),
                kubeconfig: Some(self.kubeconfig.to_owned()),
                ..kubewake_viewer::ViewerOptions::default()
            };
            match Viewer::start(options).await {
                Ok(viewer) => {
                    let at = viewer.addresses();
                    parts.viewer = Some(viewer);
                    ports.page = at.page;
                    ports.otlp = at.otlp_grpc.unwrap_or(ports.otlp);
                    ports.otlp_http = at.otlp_http.unwrap_or(ports.otlp_http);
                    step.succeed(&format!("http://{}", ports.page));
                    return Ok(ports);
                }
                Err(_)
                    if tries < MAX_START_ATTEMPTS
                        && [ports.page, ports.otlp, ports.otlp_http].into_iter().any(|at| !is_free(at)) =>
                {
                    tries += 1;
                    // Only the API server listens so far.
                    ports = ListenAddresses {
                        api: ports.api,
                        ..choose_free_addresses(ListenAddresses { api: (ports.api.ip(), 0).into(), ..ports })?
                    };
                }
                Err(error) => return Err(error).context("failed to start the viewer"),
            }
        }
    }

    /// Starts everything in the cluster. Returns the trace of the sample, if there is one.
    async fn start_system(
        &self,
        clients: &DemoClients,
        ports: &ListenAddresses,
        notice: &InstanceRecord,
    ) -> anyhow::Result<Option<CompletedTrace>> {
        let client = &clients.quiet;
        let mut objects = ManifestApplier::new(clients.quiet.clone(), FIELD_MANAGER);
        let step = self.progress.begin_step("operator");
        objects.apply_all(&install::operator_manifests(ports.otlp)?).await?;
        objects.apply(&notice.config_map()).await?;
        if objects.get(&install::telemetry_manifest()).await?.is_none() {
            objects.apply(&install::telemetry_manifest()).await?;
        }
        let pipeline = install::pipeline_manifest(&notice.otlp.grpc);
        objects.apply(&pipeline).await?;
        // Nothing at the start depends on it, so it is not awaited.
        objects.apply(&install::log_pipeline_manifest(&notice.otlp.grpc)).await?;
        with_step_timeout(install::wait_for_otlp_endpoint(client), "the operator did not create Service kubewake-otlp")
            .await?;
        with_step_timeout(
            manifest_applier::wait_until_available(client, install::SYSTEM_NAMESPACE, "kubewake-operator"),
            "the operator did not become ready",
        )
        .await?;
        step.succeed("");

        // Independent components start concurrently, and are awaited one by one.
        let step = self.progress.begin_step("collector");
        let otlp = install::wait_for_otlp_endpoint(client).await?;
        objects.apply_all(&install::webhook_manifests(&otlp)?).await?;
        let samples = if self.args.no_demo { &[][..] } else { &DemoSample::ALL };
        for sample in samples {
            demo::apply_operator(clients, *sample).await?;
        }
        with_step_timeout(
            install::wait_for_pipeline(&mut objects, &pipeline),
            "TracePipeline default did not become ready",
        )
        .await?;
        step.succeed(&format!("TracePipeline default, {otlp} to the viewer"));
        let step = self.progress.begin_step("webhook");
        with_step_timeout(
            manifest_applier::wait_until_available(client, "kubewake-webhook", "kubewake-webhook"),
            "the webhook did not become ready",
        )
        .await?;
        step.succeed("");
        for sample in samples {
            let step = self.progress.begin_step(sample.operator().1);
            demo::wait_for_operator(clients, *sample).await?;
            step.succeed("");
        }
        if self.args.no_demo { Ok(None) } else { self.apply_sample(clients, notice).await }
    }

    /// Applies the sample Head, or keeps the existing one.
    async fn apply_sample(
        &self,
        clients: &DemoClients,
        notice: &InstanceRecord,
    ) -> anyhow::Result<Option<CompletedTrace>> {
        let step = self.progress.begin_step("sample Head");
        let found = match demo::current_trace_id(clients, DemoSample::Head).await? {
            // The sample existed before; its trace may have been evicted since.
            Some(trace) => demo::lookup_trace(&notice.page, &trace, DemoSample::Head.converge_span_name()).await?,
            None => {
                let applied = demo::show(clients, DemoSample::Head).await?;
                step.set_detail("waiting for the complete trace");
                let ready = demo::wait_until_ready(clients, DemoSample::Head);
                Some(
                    demo::wait_for_trace(&notice.page, &applied.trace_id, DemoSample::Head.converge_span_name(), ready)
                        .await?,
                )
            }
        };
        step.succeed(found.as_ref().map_or("", |found| &found.facts));
        Ok(found)
    }

    fn cluster_options(&self, ports: &ListenAddresses) -> anyhow::Result<ClusterOptions> {
        let images = process_images(&self.args.images)?;
        let api = server::Options {
            listen: ports.api,
            data_dir: self.folder.cluster_dir(),
            tracing_config_file: Some(self.folder.tracing_config_path()),
            ..server::Options::default()
        };
        Ok(ClusterOptions {
            api,
            nodes: self.args.nodes,
            images,
            grace: POD_GRACE_PERIOD,
            quiet: true,
            ..ClusterOptions::default()
        })
    }
}

/// This program under all of its image names, a shell for the samples' containers, and the given images.
pub(super) fn process_images(given: &[String]) -> anyhow::Result<ImageStore> {
    let this = std::env::current_exe().context("failed to find the path of this program")?;
    let example = |name: &str| ImageEntrypoint::new(this.clone()).arg("example").arg(name);
    let images = cluster::builtin_images()?
        .with_image(ReleaseImage::HeadOperator.reference(), example("head-operator"))
        .with_image(ReleaseImage::DemoScheduler.reference(), example("scheduler"))
        .with_image("busybox", ImageEntrypoint::new("/bin/sh"))
        .with_image("example/shell", ImageEntrypoint::new("/bin/sh"));
    cluster::add_given_images(images, given)
}

fn choose_free_addresses(wanted: ListenAddresses) -> anyhow::Result<ListenAddresses> {
    wanted
        .next_free(is_free)
        .context("no free port for one of the parts: choose other ports with --listen, --otlp, --otlp-http or --api")
}

async fn with_step_timeout<T>(step: impl Future<Output = anyhow::Result<T>>, what: &str) -> anyhow::Result<T> {
    let done = timeout(STEP_TIMEOUT, step).await;
    done.with_context(|| format!("{what} within {} s", STEP_TIMEOUT.as_secs()))?.with_context(|| what.to_owned())
}

/// Opens the page in a browser, if there is one.
fn open_browser(page: &str, progress: StartProgress) {
    let mut command = Command::new("xdg-open");
    command.arg(page).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    match command.spawn() {
        Ok(mut child) => {
            // The launcher exits once the browser has the address.
            std::thread::spawn(move || child.wait());
        }
        Err(error) => progress.print_note(&format!("failed to open a browser: xdg-open: {error}")),
    }
}
