//! From nothing to everything, step by step.

use std::{
    future::Future,
    io::Write as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};

use anyhow::{Context, bail};
use kubewake_apiserver::server;
use kubewake_config::model::{LogLevel, Logs};
use kubewake_node::{
    cluster::Options,
    images::{Images, Program},
};
use kubewake_release::Image;
use kubewake_viewer::Viewer;
use tokio::{sync::watch, time::timeout};

use super::{
    Args,
    folder::{self, Folder},
    install,
    notice::Notice,
    parts::Parts,
    pipelines,
    ports::{Ports, is_free},
    progress::Progress,
    restarts,
    screen::Screen,
};
use crate::{
    cluster,
    demo::{self, Clients, Followed, Sample},
    logging,
    objects::{self, Objects},
    output::number::count,
};

/// Who applies what belongs to the system.
const MANAGER: &str = "kubewake-up";
/// Only a broken system needs this long for a step.
const PATIENCE: Duration = Duration::from_secs(120);
/// Who pressed Ctrl-C does not wait long, and a collector needs no more to send what it has to the viewer beside it.
const GRACE: Duration = Duration::from_secs(2);
/// Somebody else may take a port between the look and the use of it; hardly more often than this.
const TRIES: u32 = 5;

/// Starts everything, says so, and tells of restarts from then on. It returns only when something fails.
pub(super) async fn run(
    args: &Args,
    folder: &Folder,
    parts: &mut Parts,
    progress: Progress,
    level: &watch::Sender<Logs>,
) -> anyhow::Result<()> {
    let kubeconfig = kubeconfig(args, folder)?;
    let starting = Starting { args, folder, progress, kubeconfig: &kubeconfig };
    let wanted = args.ports(folder.ports()?);
    let ports = starting.cluster(wanted, parts).await?;
    let ports = starting.viewer(ports, parts).await?;
    ports.moved(wanted).iter().for_each(|moved| {
        progress.note(&format!("  {} is busy: {} is on {}", moved.from, moved.what, moved.to));
    });
    folder.remember(&ports)?;
    let clients = Clients::new(crate::client::config(Some(&kubeconfig)).await?, Some(&kubeconfig))?;
    let notice = Notice::new(&ports, &kubeconfig);
    let sample = starting.system(&clients, &ports, &notice).await?;
    // Without it other commands have to be told where this one is.
    let _posted = notice.post().inspect_err(|error| progress.note(&format!("  {error:#}"))).ok();
    let screen = Screen { ports: &ports, kubeconfig: &kubeconfig, sample: sample.as_ref() };
    // Whoever does not read it has the files.
    let _ = std::io::stdout().write_all(screen.text().as_bytes());
    level.send_replace(logging::only(LogLevel::Warn));
    if args.open {
        open(&notice.page, progress);
    }
    tokio::select! {
        () = restarts::tell(clients.quiet.clone(), |text| progress.note(text)) => {}
        () = pipelines::tell(clients.quiet.clone(), |text| progress.note(text)) => {}
    }
    bail!("the cluster cannot be watched any more")
}

fn kubeconfig(args: &Args, folder: &Folder) -> anyhow::Result<PathBuf> {
    let named = args.kubeconfig.as_deref().map(std::path::absolute).transpose()?;
    Ok(named.unwrap_or_else(|| folder.kubeconfig()))
}

struct Starting<'a> {
    args: &'a Args,
    folder: &'a Folder,
    progress: Progress,
    kubeconfig: &'a Path,
}

impl Starting<'_> {
    async fn cluster(&self, wanted: Ports, parts: &mut Parts) -> anyhow::Result<Ports> {
        let step = self.progress.begin("cluster");
        folder::write(&self.folder.tracing(), install::TRACING).context("cannot write the tracing configuration")?;
        let mut tries = 0;
        loop {
            let mut ports = free(wanted)?;
            match parts.start_cluster(self.options(&ports)?).await {
                Ok(cluster) => {
                    ports.api = cluster.api().address();
                    let written = cluster.api().kubeconfig().write(self.kubeconfig);
                    written.with_context(|| format!("cannot write {}", self.kubeconfig.display()))?;
                    step.done(&format!("https://{}, {}", ports.api, count(self.args.nodes.into(), "node")));
                    return Ok(ports);
                }
                Err(_) if tries < TRIES && !is_free(ports.api) => tries += 1,
                Err(error) => return Err(error.context("the cluster does not start")),
            }
        }
    }

    async fn viewer(&self, mut ports: Ports, parts: &mut Parts) -> anyhow::Result<Ports> {
        let step = self.progress.begin("viewer");
        let mut tries = 0;
        loop {
            let options = kubewake_viewer::Options {
                listen: ports.page,
                otlp_grpc: Some(ports.otlp),
                otlp_http: Some(ports.otlp_http),
                data_dir: self.folder.traces(),
                kubeconfig: Some(self.kubeconfig.to_owned()),
                ..kubewake_viewer::Options::default()
            };
            match Viewer::start(options).await {
                Ok(viewer) => {
                    let at = viewer.addresses();
                    parts.viewer = Some(viewer);
                    ports.page = at.page;
                    ports.otlp = at.otlp_grpc.unwrap_or(ports.otlp);
                    ports.otlp_http = at.otlp_http.unwrap_or(ports.otlp_http);
                    step.done(&format!("http://{}", ports.page));
                    return Ok(ports);
                }
                Err(_)
                    if tries < TRIES
                        && [ports.page, ports.otlp, ports.otlp_http].into_iter().any(|at| !is_free(at)) =>
                {
                    tries += 1;
                    // Only the API server listens so far.
                    ports = Ports { api: ports.api, ..free(Ports { api: (ports.api.ip(), 0).into(), ..ports })? };
                }
                Err(error) => return Err(error).context("the viewer does not start"),
            }
        }
    }

    /// All that runs in the cluster. Gives the trace of the sample, if there is one.
    async fn system(&self, clients: &Clients, ports: &Ports, notice: &Notice) -> anyhow::Result<Option<Followed>> {
        let (client, mut objects) = (&clients.quiet, Objects::new(clients.quiet.clone(), MANAGER));
        let step = self.progress.begin("operator");
        objects.apply_all(&install::operator(ports.otlp)?).await?;
        objects.apply(&notice.config_map()).await?;
        if objects.get(&install::telemetry()).await?.is_none() {
            objects.apply(&install::telemetry()).await?;
        }
        let pipeline = install::pipeline(&notice.otlp.grpc);
        objects.apply(&pipeline).await?;
        within(install::otlp(client), "the operator makes no Service of the pipeline").await?;
        within(objects::available(client, install::SYSTEM, "kubewake-operator"), "the operator is not ready").await?;
        step.done("");

        // What does not depend on each other starts at the same time, and is waited for one by one.
        let step = self.progress.begin("collector");
        let otlp = install::otlp(client).await?;
        objects.apply_all(&install::webhook(&otlp)?).await?;
        let samples = if self.args.no_demo { &[][..] } else { &Sample::ALL };
        for sample in samples {
            demo::install(clients, *sample).await?;
        }
        within(install::pipeline_ready(&mut objects, &pipeline), "the pipeline is not ready").await?;
        step.done(&format!("TracePipeline default, {otlp} to the viewer"));
        let step = self.progress.begin("webhook");
        within(objects::available(client, "kubewake-webhook", "kubewake-webhook"), "the webhook is not ready").await?;
        step.done("");
        for sample in samples {
            let step = self.progress.begin(sample.operator().1);
            demo::ready(clients, *sample).await?;
            step.done("");
        }
        if self.args.no_demo { Ok(None) } else { self.sample(clients, notice).await }
    }

    /// The sample Head, as it is or as it was left.
    async fn sample(&self, clients: &Clients, notice: &Notice) -> anyhow::Result<Option<Followed>> {
        let step = self.progress.begin("sample Head");
        let found = match demo::current(clients, Sample::Head).await? {
            // It was there before; its trace may have gone since.
            Some(trace) => demo::known(&notice.page, &trace, Sample::Head.converge()).await?,
            None => {
                let applied = demo::show(clients, Sample::Head).await?;
                step.at("until its trace is whole");
                let ready = demo::is_ready(clients, Sample::Head);
                Some(demo::follow(&notice.page, &applied.trace, Sample::Head.converge(), ready).await?)
            }
        };
        step.done(found.as_ref().map_or("", |found| &found.facts));
        Ok(found)
    }

    fn options(&self, ports: &Ports) -> anyhow::Result<Options> {
        let images = images(&self.args.images)?;
        let api = server::Options {
            listen: ports.api,
            data_dir: self.folder.cluster(),
            tracing_config_file: Some(self.folder.tracing()),
            ..server::Options::default()
        };
        Ok(Options { api, nodes: self.args.nodes, images, grace: GRACE, quiet: true, ..Options::default() })
    }
}

/// This program under all its names, a shell for what the samples run, and what was given.
pub(super) fn images(given: &[String]) -> anyhow::Result<Images> {
    let this = std::env::current_exe().context("this program does not know where it is")?;
    let example = |name: &str| Program::new(this.clone()).arg("example").arg(name);
    let images = cluster::own_images()?
        .with(Image::HeadOperator.reference(), example("head-operator"))
        .with(Image::DemoScheduler.reference(), example("scheduler"))
        .with("busybox", Program::new("/bin/sh"))
        .with("example/shell", Program::new("/bin/sh"));
    cluster::with_given(images, given)
}

fn free(wanted: Ports) -> anyhow::Result<Ports> {
    wanted
        .free(is_free)
        .context("there is no free port for one of the parts: name others, as `kubewake up --help` says")
}

async fn within<T>(step: impl Future<Output = anyhow::Result<T>>, what: &str) -> anyhow::Result<T> {
    let done = timeout(PATIENCE, step).await;
    done.with_context(|| format!("{what} after {} s", PATIENCE.as_secs()))?.with_context(|| what.to_owned())
}

/// Opens the page, where there is somebody who can.
fn open(page: &str, progress: Progress) {
    let mut command = Command::new("xdg-open");
    command.arg(page).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    match command.spawn() {
        Ok(mut child) => {
            // It ends when it has told the browser.
            std::thread::spawn(move || child.wait());
        }
        Err(error) => progress.note(&format!("no browser is opened: xdg-open: {error}")),
    }
}
