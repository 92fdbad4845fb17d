//! Log lines, on standard error.

use kubewake_config::model::{LogEncoding, LogLevel, Logs};
use tracing_subscriber::{
    Layer, Registry, filter::Targets, fmt, layer::SubscriberExt, reload, util::SubscriberInitExt,
};

/// The running log output, whose level can follow the document's.
#[cfg_attr(
    not(feature = "data-plane"),
    expect(dead_code, reason = "only a collector's document changes while it runs")
)]
pub(crate) struct Output(Option<reload::Handle<Targets, Registry>>);

/// Only what is at least so bad, for a command that shows people how it gets on.
#[cfg(feature = "desk")]
pub(crate) fn only(level: LogLevel) -> Logs {
    Logs { level, ..Logs::default() }
}

/// Starts logging. How lines look stays as it is; what is shown can change.
pub(crate) fn start(logs: &Logs) -> Output {
    let (filter, handle) = reload::Layer::new(filter(logs));
    let lines = fmt::layer().with_writer(std::io::stderr).with_target(false);
    let lines = match logs.encoding {
        LogEncoding::Console => lines.with_ansi(colours()).boxed(),
        LogEncoding::Json => lines.json().boxed(),
    };
    // A second start in one process keeps the first one's output.
    Output(tracing_subscriber::registry().with(filter).with(lines).try_init().ok().map(|()| handle))
}

#[cfg(feature = "data-plane")]
impl Output {
    /// Takes over the level whenever it changes.
    pub(crate) fn follow(self, mut settings: tokio::sync::watch::Receiver<Logs>) {
        let Some(handle) = self.0 else { return };
        tokio::spawn(async move {
            while settings.changed().await.is_ok() {
                let filter = filter(&settings.borrow_and_update());
                drop(handle.reload(filter));
            }
        });
    }
}

/// `RUST_LOG` wins over the document, for whoever hunts a bug.
fn filter(logs: &Logs) -> Targets {
    let level = match logs.level {
        LogLevel::Debug => "debug",
        LogLevel::Info => "info",
        LogLevel::Warn => "warn",
        LogLevel::Error => "error",
    };
    // The libraries below say at `debug` what only their authors want to know. kube's client says every failed request a second
    // time, and without a word on which one it was.
    let default = format!("{level},h2=warn,hyper=warn,hyper_util=warn,rustls=warn,kube_client=off");
    let wanted = std::env::var("RUST_LOG").ok().and_then(|text| text.parse().ok());
    wanted.or_else(|| default.parse().ok()).unwrap_or_default()
}

fn colours() -> bool {
    std::io::IsTerminal::is_terminal(&std::io::stderr()) && std::env::var_os("NO_COLOR").is_none()
}
