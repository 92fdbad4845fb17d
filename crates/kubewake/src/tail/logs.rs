//! Log records of `kubewake tail --logs`.

use clap::ValueEnum;
use serde::Deserialize;
use serde_json::Value;

use super::{format_time, service_style};
use crate::{
    http_client::percent_encode,
    output::{
        TerminalLayout, TextStyle,
        text::{pad_or_truncate, sanitize},
    },
    trace::nanoseconds,
};

/// The columns of severities and of sources.
const SEVERITY_COLUMN_WIDTH: usize = 5;
const SOURCE_COLUMN_WIDTH: usize = 36;

/// The lowest severity that is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum MinSeverity {
    Trace,
    Debug,
    Info,
    Warn,
    Error,
    Fatal,
}

impl MinSeverity {
    fn as_str(self) -> &'static str {
        match self {
            Self::Trace => "trace",
            Self::Debug => "debug",
            Self::Info => "info",
            Self::Warn => "warn",
            Self::Error => "error",
            Self::Fatal => "fatal",
        }
    }
}

/// Which records are shown.
#[derive(Debug, Default, clap::Args)]
pub(super) struct LogArgs {
    /// Show log records instead of spans
    #[arg(long)]
    pub(super) logs: bool,
    /// Show only log records of pods in this namespace
    #[arg(long, short, value_name = "NAME", requires = "logs")]
    pub(super) namespace: Option<String>,
    /// Show only log records of this pod
    #[arg(long, value_name = "NAME", requires = "logs")]
    pub(super) pod: Option<String>,
    /// Show only log records of containers of this name
    #[arg(long, value_name = "NAME", requires = "logs")]
    pub(super) container: Option<String>,
    /// Show only log records of this severity or a higher one
    #[arg(long, value_enum, value_name = "LEVEL", requires = "logs", conflicts_with = "errors")]
    pub(super) severity: Option<MinSeverity>,
}

impl LogArgs {
    /// The path of the stream, with its parameters.
    pub(super) fn stream_path(&self, service: Option<&str>, errors: bool) -> String {
        let severity = self.severity.or(errors.then_some(MinSeverity::Error)).map(MinSeverity::as_str);
        let all = [
            ("service", service),
            ("namespace", self.namespace.as_deref()),
            ("pod", self.pod.as_deref()),
            ("container", self.container.as_deref()),
            ("severity", severity),
        ];
        let given = all.into_iter().filter_map(|(name, value)| Some(format!("{name}={}", percent_encode(value?))));
        let query: Vec<String> = given.collect();
        let mark = if query.is_empty() { "" } else { "?" };
        format!("/api/v1/tail/logs{mark}{}", query.join("&"))
    }
}

/// What is shown of a record.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct TailLog {
    #[serde(deserialize_with = "nanoseconds")]
    time: u64,
    severity: String,
    service: String,
    namespace: String,
    pod: String,
    container: String,
    body: Value,
    pub(super) trace_id: String,
}

/// A line with the first line of the body, and one for each further line.
pub(super) fn format_log(log: &TailLog, screen: &TerminalLayout) -> String {
    let severity = pad_or_truncate(&sanitize(&log.severity.to_ascii_uppercase()), SEVERITY_COLUMN_WIDTH);
    let severity = match log.severity.as_str() {
        "error" | "fatal" => screen.paint(TextStyle::Bad, &severity),
        "warn" => screen.paint(TextStyle::Warning, &severity),
        "trace" | "debug" => screen.paint(TextStyle::Dim, &severity),
        _ => severity,
    };
    let source = log.source();
    let source = screen.paint(service_style(&source), &pad_or_truncate(&sanitize(&source), SOURCE_COLUMN_WIDTH));
    let body = match &log.body {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let mut lines = body.trim_end().lines();
    let first = sanitize(lines.next().unwrap_or_default());
    let mut drawn = format!("{}  {severity}  {source}  {first}", format_time(log.time)).trim_end().to_owned();
    for line in lines {
        drawn += &format!("\n{}{}", " ".repeat(14), sanitize(line));
    }
    drawn
}

impl TailLog {
    /// The pod and the container, or else the service.
    fn source(&self) -> String {
        if self.pod.is_empty() {
            return self.service.clone();
        }
        let container = if self.container.is_empty() { String::new() } else { format!(" {}", self.container) };
        format!("{}/{}{container}", self.namespace, self.pod)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn formatted(record: &str) -> String {
        format_log(&serde_json::from_str(record).unwrap(), &TerminalLayout::plain(110))
    }

    #[test]
    fn record_is_a_line_with_its_pod_and_further_lines_of_its_body() {
        let record = r#"{"time":"1700000000123000000","severity":"error","namespace":"shop","pod":"web-1","container":"main",
            "service":"web","body":"no money\u001b[1m\n  at buy()\n","traceId":""}"#;
        let source = format!("{:<36}", "shop/web-1 main");
        let expected = format!("22:13:20.123  ERROR  {source}  no money\\u{{1b}}[1m\n                at buy()");
        assert_eq!(formatted(record), expected);
    }

    #[test]
    fn record_without_a_pod_has_its_service_and_any_body_is_shown() {
        let service = format!("{:<36}", "web");
        let line = |severity: &str, body: &str| format!("00:00:00.000  {severity:<5}  {service}  {body}");
        let record = r#"{"service":"web","severity":"warn","body":{"a":[1,"\n"]}}"#;
        assert_eq!(formatted(record), line("WARN", r#"{"a":[1,"\n"]}"#));
        assert_eq!(formatted(r#"{"service":"web","body":null}"#), line("", "").trim_end());
    }

    #[test]
    fn filters_are_parameters_of_the_stream() {
        let args = LogArgs { logs: true, ..LogArgs::default() };
        assert_eq!(args.stream_path(None, false), "/api/v1/tail/logs");
        assert_eq!(args.stream_path(Some("a b"), true), "/api/v1/tail/logs?service=a%20b&severity=error");
        let args = LogArgs {
            namespace: Some("shop".to_owned()),
            pod: Some("web".to_owned()),
            container: Some("main".to_owned()),
            severity: Some(MinSeverity::Warn),
            ..args
        };
        let path = "/api/v1/tail/logs?namespace=shop&pod=web&container=main&severity=warn";
        assert_eq!(args.stream_path(None, false), path);
    }
}
