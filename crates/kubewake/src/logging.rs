//! Logging to standard error.

use kubewake_config::model::{LogEncoding, LogLevel, LogsConfig};
use tracing_subscriber::{
    Layer, Registry, filter::Targets, fmt, layer::SubscriberExt, reload, util::SubscriberInitExt,
};

/// The active log output, whose level can follow the configuration.
#[cfg_attr(
    not(feature = "data-plane"),
    expect(dead_code, reason = "only the collector changes its log settings at run time")
)]
pub(crate) struct LoggingHandle(Option<reload::Handle<Targets, Registry>>);

/// Logs from this level up, for commands with output of their own.
#[cfg(feature = "cli")]
pub(crate) fn logs_at_level(level: LogLevel) -> LogsConfig {
    LogsConfig { level, ..LogsConfig::default() }
}

/// Starts logging. The format of lines is fixed from then on; the level can change.
pub(crate) fn start(logs: &LogsConfig) -> LoggingHandle {
    let (filter, handle) = reload::Layer::new(build_filter(logs));
    let lines = fmt::layer().with_writer(std::io::stderr).with_target(false);
    let lines = match logs.encoding {
        LogEncoding::Console => lines.with_ansi(use_colours()).boxed(),
        LogEncoding::Json => lines.json().boxed(),
    };
    // A second start in one process keeps the output of the first one.
    LoggingHandle(tracing_subscriber::registry().with(filter).with(lines).try_init().ok().map(|()| handle))
}

#[cfg(feature = "data-plane")]
impl LoggingHandle {
    /// Follows changes of the level.
    pub(crate) fn follow_settings(self, mut settings: tokio::sync::watch::Receiver<LogsConfig>) {
        let Some(handle) = self.0 else { return };
        tokio::spawn(async move {
            while settings.changed().await.is_ok() {
                let filter = build_filter(&settings.borrow_and_update());
                drop(handle.reload(filter));
            }
        });
    }
}

/// `RUST_LOG` takes precedence over the configuration, for debugging.
fn build_filter(logs: &LogsConfig) -> Targets {
    let level = match logs.level {
        LogLevel::Debug => "debug",
        LogLevel::Info => "info",
        LogLevel::Warn => "warn",
        LogLevel::Error => "error",
    };
    // At `debug` these libraries log details for their own authors. kube's client logs every failed request a
    // second time, without naming it.
    let default = format!("{level},h2=warn,hyper=warn,hyper_util=warn,rustls=warn,kube_client=off");
    let wanted = std::env::var("RUST_LOG").ok().and_then(|text| text.parse().ok());
    wanted.or_else(|| default.parse().ok()).unwrap_or_default()
}

fn use_colours() -> bool {
    std::io::IsTerminal::is_terminal(&std::io::stderr()) && std::env::var_os("NO_COLOR").is_none()
}
