//! What people read when everything runs.

use std::{fmt::Write as _, path::Path};

use super::ports::Ports;
use crate::{demo::Followed, output::text::quoted};

/// What there is to be shown.
#[derive(Debug)]
pub(super) struct Screen<'a> {
    pub(super) ports: &'a Ports,
    pub(super) kubeconfig: &'a Path,
    /// The trace of the sample Head.
    pub(super) sample: Option<&'a Followed>,
}

/// A change of the sample that anybody can type.
const TRY: &str = r#"kubectl patch head sample --type=json -p '[{"op":"replace","path":"/spec/children/0/template/replicas","value":3}]'"#;

/// And commands of ours.
const NEXT: [(&str, &str); 4] = [
    ("kubewake demo head", "a change of the sample, and the link of its trace"),
    ("kubewake demo scheduler", "another sample"),
    ("kubewake trace head/sample", "its latest trace, in the terminal"),
    ("kubewake status", "how everything is"),
];

impl Screen<'_> {
    /// All lines, the last of which says that it is ready.
    pub(super) fn text(&self) -> String {
        let Ports { page, otlp, otlp_http, .. } = self.ports;
        let mut text = format!("\nKubewake is up. Ctrl-C stops it.\n\n  page       http://{page}\n");
        let mut line = |name: &str, value: &str| {
            // Writing to a text cannot fail.
            let _ = writeln!(text, "  {name:<10} {value}");
        };
        if let Some(Followed { link, facts }) = self.sample {
            line("a trace", link);
            line("", &format!("Head sample is {facts}"));
        }
        line("kubectl", &format!("export KUBECONFIG={}", quoted(self.kubeconfig)));
        line("OTLP HTTP", &export("http/protobuf", &otlp_http.to_string()));
        line("OTLP gRPC", &export("grpc", &otlp.to_string()));
        text.push_str("\nTry next:\n");
        if self.sample.is_some() {
            let _ = writeln!(text, "  {TRY}");
        }
        for (command, what) in NEXT.iter().filter(|(command, _)| self.sample.is_some() || !command.contains("sample")) {
            let _ = writeln!(text, "  {command:<28} {what}");
        }
        let _ = writeln!(text, "\nready http://{page}");
        text
    }
}

fn export(protocol: &str, address: &str) -> String {
    format!("export OTEL_EXPORTER_OTLP_PROTOCOL={protocol} OTEL_EXPORTER_OTLP_ENDPOINT=http://{address}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_says_that_it_is_ready() {
        let at = |port| ([127, 0, 0, 1], port).into();
        let ports = Ports { page: at(1), api: at(2), otlp: at(3), otlp_http: at(4) };
        let text = Screen { ports: &ports, kubeconfig: Path::new("/k"), sample: None }.text();
        assert_eq!(text.lines().last(), Some("ready http://127.0.0.1:1"));
        assert!(text.contains("OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:4\n") && !text.contains("patch"), "{text}");
    }
}
