//! The message that `kubewake up` prints when it is ready.

use std::{fmt::Write as _, path::Path};

use super::ports::ListenAddresses;
use crate::{demo::CompletedTrace, output::text::shell_quote};

#[derive(Debug)]
pub(super) struct ReadyMessage<'a> {
    pub(super) ports: &'a ListenAddresses,
    pub(super) kubeconfig: &'a Path,
    /// The trace of the sample Head.
    pub(super) sample: Option<&'a CompletedTrace>,
}

/// A change of the sample for users to try.
const SAMPLE_PATCH_COMMAND: &str = r#"kubectl patch head sample --type=json -p '[{"op":"replace","path":"/spec/children/0/template/replicas","value":3}]'"#;

const NEXT_COMMANDS: [(&str, &str); 4] = [
    ("kubewake demo head", "changes the sample, and prints the link of the trace"),
    ("kubewake demo scheduler", "applies another sample"),
    ("kubewake trace head/sample", "shows the latest trace of the sample"),
    ("kubewake status", "shows the state of all parts"),
];

impl ReadyMessage<'_> {
    /// Renders all lines, the last of which reports readiness.
    pub(super) fn render(&self) -> String {
        let ListenAddresses { page, otlp, otlp_http, .. } = self.ports;
        let mut text = format!("\nKubewake is up. Ctrl-C stops it.\n\n  page       http://{page}\n");
        let mut line = |name: &str, value: &str| {
            // Writing to a String cannot fail.
            let _ = writeln!(text, "  {name:<10} {value}");
        };
        if let Some(CompletedTrace { link, facts }) = self.sample {
            line("a trace", link);
            line("", &format!("Head sample is {facts}"));
        }
        line("kubectl", &format!("export KUBECONFIG={}", shell_quote(self.kubeconfig)));
        line("OTLP HTTP", &format_export("http/protobuf", &otlp_http.to_string()));
        line("OTLP gRPC", &format_export("grpc", &otlp.to_string()));
        text.push_str("\nTry next:\n");
        if self.sample.is_some() {
            let _ = writeln!(text, "  {SAMPLE_PATCH_COMMAND}");
        }
        for (command, what) in
            NEXT_COMMANDS.iter().filter(|(command, _)| self.sample.is_some() || !command.contains("sample"))
        {
            let _ = writeln!(text, "  {command:<28} {what}");
        }
        let _ = writeln!(text, "\nready http://{page}");
        text
    }
}

fn format_export(protocol: &str, address: &str) -> String {
    format!("export OTEL_EXPORTER_OTLP_PROTOCOL={protocol} OTEL_EXPORTER_OTLP_ENDPOINT=http://{address}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_says_that_it_is_ready() {
        let at = |port| ([127, 0, 0, 1], port).into();
        let ports = ListenAddresses { page: at(1), api: at(2), otlp: at(3), otlp_http: at(4) };
        let text = ReadyMessage { ports: &ports, kubeconfig: Path::new("/k"), sample: None }.render();
        assert_eq!(text.lines().last(), Some("ready http://127.0.0.1:1"));
        assert!(text.contains("OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:4\n") && !text.contains("patch"), "{text}");
    }
}
