//! `kubewake tail`: prints spans or log records as they arrive at the viewer.
//!
//! The command reconnects when the viewer comes back, and reports what was skipped because it read too slowly.

mod logs;

use std::{process::ExitCode, time::Duration};

use anyhow::Context;
use serde::Deserialize;
use serde_json::Value;
use tokio::signal::unix::{SignalKind, signal};

use self::logs::{LogArgs, TailLog, format_log};
use crate::{
    discovery::{KubeconfigArgs, ViewerArgs},
    http_client::{JsonHttpClient, ServerSentEvent, percent_encode},
    output::{
        self, OutputFormat, SERVICE_COLOUR_COUNT, TerminalLayout, TextStyle,
        text::{pad_or_truncate, sanitize, truncate},
        units::{format_count, format_duration},
    },
    trace::nanoseconds,
};

/// For the first answer. After that a stream may be silent for as long as it likes.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(5);
/// Before the viewer is asked again.
const RECONNECT_DELAY: Duration = Duration::from_secs(1);
/// The column of services.
const SERVICE_COLUMN_WIDTH: usize = 22;

/// Arguments of `kubewake tail`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  kubewake tail
  kubewake tail --service head-operator --errors
  kubewake tail -o json | jq -r '[.service, .name, .duration] | @tsv'
  kubewake tail --limit 1 -o json                          wait for one span
  kubewake tail --logs --namespace shop --severity warn    log records instead of spans

Ctrl-C ends the command with exit code 0. Times are in UTC.")]
pub(crate) struct TailArgs {
    /// Show only spans, or log records, of this service
    #[arg(long, value_name = "NAME")]
    service: Option<String>,
    /// Show only spans with an error, or log records of severity error or higher
    #[arg(long)]
    errors: bool,
    /// End after this number of spans or log records
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    limit: Option<u64>,
    #[command(flatten)]
    logs: LogArgs,
    #[command(flatten)]
    viewer: ViewerArgs,
    #[command(flatten)]
    kubeconfig_args: KubeconfigArgs,
    /// Output format; `json` prints one object per line, `yaml` one document per span or record, `name` their trace ids
    #[arg(long, short, value_enum, default_value_t = OutputFormat::Table)]
    output: OutputFormat,
}

/// What is shown of a span.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct TailSpan {
    trace_id: String,
    service: String,
    name: String,
    #[serde(deserialize_with = "nanoseconds")]
    start: u64,
    duration: u64,
    status: String,
    message: Option<String>,
}

/// Whether to go on.
enum TailFlow {
    Continue,
    Stop,
}

pub(crate) async fn run(args: TailArgs) -> anyhow::Result<ExitCode> {
    let mut terminate = signal(SignalKind::terminate())?;
    tokio::select! {
        ended = tail(&args) => ended?,
        _ = terminate.recv() => {}
        _ = tokio::signal::ctrl_c() => {}
    }
    Ok(ExitCode::SUCCESS)
}

async fn tail(args: &TailArgs) -> anyhow::Result<()> {
    let viewer = args.viewer.discover_viewer(&args.kubeconfig_args).await?;
    let url = args.stream_url(&viewer.url);
    let web = JsonHttpClient::new(RESPONSE_TIMEOUT);
    let screen = TerminalLayout::stdout();
    let mut left = args.limit.unwrap_or(u64::MAX);
    // A viewer that is missing at the start is an error, and not an interruption.
    let hint = || {
        format!(
            "failed to follow the viewer at {} (start one with kubewake up or kubewake viewer, or name one with --viewer URL)",
            viewer.url
        )
    };
    let mut events = web.events(&url).await.with_context(hint)?;
    loop {
        while let Ok(Some(event)) = events.next().await {
            if let TailFlow::Stop = args.show(&event, &screen, &mut left)? {
                return Ok(());
            }
        }
        eprintln!("lost the connection to the viewer at {}; waiting for the viewer", viewer.url);
        events = loop {
            tokio::time::sleep(RECONNECT_DELAY).await;
            if let Ok(events) = web.events(&url).await {
                break events;
            }
        };
    }
}

impl TailArgs {
    fn stream_url(&self, viewer: &str) -> String {
        if self.logs.logs {
            return format!("{viewer}{}", self.logs.stream_path(self.service.as_deref(), self.errors));
        }
        let service = self.service.as_ref().map(|service| format!("service={}", percent_encode(service)));
        let errors = self.errors.then(|| "errors=true".to_owned());
        let query: Vec<String> = service.into_iter().chain(errors).collect();
        let mark = if query.is_empty() { "" } else { "?" };
        format!("{viewer}/api/v1/tail{mark}{}", query.join("&"))
    }

    fn show(&self, event: &ServerSentEvent, screen: &TerminalLayout, left: &mut u64) -> anyhow::Result<TailFlow> {
        let Some(text) = self.format_event(event, screen) else { return Ok(TailFlow::Continue) };
        if event.name == "skipped" {
            eprintln!("{text}");
            return Ok(TailFlow::Continue);
        }
        let is_read = output::print_if_open(&format!("{text}\n"))?;
        *left = left.saturating_sub(1);
        Ok(if is_read && *left > 0 { TailFlow::Continue } else { TailFlow::Stop })
    }

    /// What to say of an event. None of those that a later viewer might send.
    fn format_event(&self, event: &ServerSentEvent, screen: &TerminalLayout) -> Option<String> {
        match event.name.as_str() {
            "span" => {
                let span: TailSpan = serde_json::from_str(&event.data).ok()?;
                self.format_data(&event.data, &span.trace_id, || format_span(&span, screen))
            }
            "log" => {
                let log: TailLog = serde_json::from_str(&event.data).ok()?;
                self.format_data(&event.data, &log.trace_id, || format_log(&log, screen))
            }
            "skipped" => {
                let skipped: Value = serde_json::from_str(&event.data).ok()?;
                let (field, item) = if self.logs.logs { ("records", "record") } else { ("spans", "span") };
                let count = format_count(skipped.get(field)?.as_u64()?, item);
                Some(format!("{count} skipped: {field} arrive faster than they are printed"))
            }
            _ => None,
        }
    }

    fn format_data(&self, data: &str, trace_id: &str, table: impl FnOnce() -> String) -> Option<String> {
        Some(match self.output {
            OutputFormat::Yaml => data_document(data)?,
            // On one line, whatever the viewer sent.
            OutputFormat::Json => serde_json::from_str::<Value>(data).ok()?.to_string(),
            OutputFormat::Name => sanitize(trace_id),
            OutputFormat::Table => table(),
        })
    }
}

/// With its mark, so that one is told from the next.
fn data_document(data: &str) -> Option<String> {
    let data: Value = serde_json::from_str(data).ok()?;
    let text = output::serialize_document(OutputFormat::Yaml, &data).ok()??;
    Some(format!("---\n{}", text.trim_end()))
}

fn format_span(span: &TailSpan, screen: &TerminalLayout) -> String {
    let is_error = span.status == "error";
    let trace = sanitize(&span.trace_id);
    let took = format_duration(span.duration);
    let taken = 12 + 2 + SERVICE_COLUMN_WIDTH + 2 + 2 + 11 + 2 + trace.len();
    let room = screen.width.saturating_sub(taken).max(16);
    let mark = if is_error { "✗ " } else { "" };
    let what = pad_or_truncate(&format!("{mark}{}", sanitize(&span.name)), room);
    let what = if is_error { screen.paint(TextStyle::Bad, &what) } else { what };
    let service =
        screen.paint(service_style(&span.service), &pad_or_truncate(&sanitize(&span.service), SERVICE_COLUMN_WIDTH));
    let mut drawn =
        format!("{}  {service}  {what}  {took:>11}  {}", format_time(span.start), screen.paint(TextStyle::Dim, &trace));
    if let Some(message) = span.message.as_ref().filter(|message| is_error && !message.is_empty()) {
        let said = truncate(&sanitize(message), screen.width.saturating_sub(14));
        drawn += &format!("\n{}{}", " ".repeat(14), screen.paint(TextStyle::Bad, &said));
    }
    drawn
}

/// The same service has the same colour each time, also in another run.
fn service_style(service: &str) -> TextStyle {
    let sum = service.bytes().fold(0_usize, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
    TextStyle::Service(sum % SERVICE_COLOUR_COUNT)
}

/// `12:34:56.789`, in UTC.
fn format_time(nanoseconds: u64) -> String {
    let milliseconds = nanoseconds / 1_000_000;
    let seconds = milliseconds / 1000;
    let milliseconds = milliseconds % 1000;
    format!("{:02}:{:02}:{:02}.{milliseconds:03}", seconds / 3600 % 24, seconds / 60 % 60, seconds % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(output: OutputFormat) -> TailArgs {
        let reach = KubeconfigArgs { kubeconfig: None, context: None };
        TailArgs {
            service: None,
            errors: false,
            limit: None,
            logs: LogArgs::default(),
            viewer: ViewerArgs { viewer: None },
            kubeconfig_args: reach,
            output,
        }
    }

    fn event(name: &str, data: &str) -> ServerSentEvent {
        ServerSentEvent { name: name.to_owned(), data: data.to_owned() }
    }

    const SPAN: &str = r#"{"traceId":"4bf92f3577b34da6a3ce929d0e0e4736","service":"shop","id":"1","name":"buy\u001b[1m","start":"1700000000123000000",
        "duration":2500000,"status":"error","message":"no\nmoney"}"#;

    #[test]
    fn a_span_is_a_line_and_an_error_says_why() {
        let screen = TerminalLayout::plain(110);
        let expected = "22:13:20.123  shop                    ✗ buy\\u{1b}[1m                  2.5 ms  4bf92f3577b34da6a3ce929d0e0e4736\n              no\\nmoney";
        assert_eq!(args(OutputFormat::Table).format_event(&event("span", SPAN), &screen).unwrap(), expected);
        let json = args(OutputFormat::Json).format_event(&event("span", SPAN), &screen).unwrap();
        assert!(!json.contains('\n') && json.contains("\"name\":\"buy\\u001b[1m\""), "{json}");
        let yaml = args(OutputFormat::Yaml).format_event(&event("span", SPAN), &screen).unwrap();
        assert!(yaml.starts_with("---\n") && yaml.contains("service: shop\n") && !yaml.contains('\u{1b}'), "{yaml}");
        assert_eq!(
            args(OutputFormat::Name).format_event(&event("span", SPAN), &screen).unwrap(),
            "4bf92f3577b34da6a3ce929d0e0e4736"
        );
    }

    #[test]
    fn what_was_left_out_is_said_and_what_is_unknown_passed_over() {
        let screen = TerminalLayout::plain(80);
        let said = args(OutputFormat::Json).format_event(&event("skipped", r#"{"spans": 7}"#), &screen).unwrap();
        assert_eq!(said, "7 spans skipped: spans arrive faster than they are printed");
        assert_eq!(args(OutputFormat::Table).format_event(&event("later", "{}"), &screen), None);
        assert_eq!(args(OutputFormat::Table).format_event(&event("span", "no"), &screen), None);
    }

    #[test]
    fn what_is_wanted_is_asked_of_the_viewer() {
        assert_eq!(args(OutputFormat::Table).stream_url("http://v"), "http://v/api/v1/tail");
        let args = TailArgs { service: Some("a b".to_owned()), errors: true, ..args(OutputFormat::Table) };
        assert_eq!(args.stream_url("http://v"), "http://v/api/v1/tail?service=a%20b&errors=true");
    }
}
