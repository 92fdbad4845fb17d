//! What people who swap the binary have on the OpenTelemetry Collector's command line.
//!
//! Messages never repeat what was given: a document on the command line may hold secrets.

use std::path::{Path, PathBuf};

/// Where the Collector reads documents from, and this one does not.
const UNSUPPORTED_CONFIG_SCHEMES: [&str; 5] = ["env", "yaml", "http", "https", "s3"];
/// The gate by which the Collector's contributions write on spans which policy kept them.
const RECORD_POLICY_GATE: &str = "processor.tailsamplingprocessor.recordpolicy";

/// The file that `--config` names: a path, or `file:` and a path.
pub(super) fn config_path(config: &Path) -> Result<PathBuf, String> {
    let Some((scheme, rest)) = config.to_str().and_then(|text| text.split_once(':')) else {
        return Ok(config.to_owned());
    };
    match scheme {
        "file" => Ok(rest.into()),
        _ if UNSUPPORTED_CONFIG_SCHEMES.contains(&scheme) => Err(format!(
            "`--config {scheme}:…` is not supported: name a file, which can contain ${{env:NAME}} and ${{file:PATH}}"
        )),
        _ => Ok(config.to_owned()),
    }
}

/// What somebody who gave `--feature-gates` should know.
pub(super) fn gates_warning(gates: &[String]) -> Option<&'static str> {
    let name = |gate: &str| gate.trim_start_matches(['+', '-']) == RECORD_POLICY_GATE;
    if gates.is_empty() {
        return None;
    }
    Some(if gates.iter().flat_map(|list| list.split(',')).any(name) {
        "`--feature-gates` has no effect: set `record_policy` of `tail_sampling` instead"
    } else {
        "`--feature-gates` has no effect: this collector has no gates"
    })
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct CommandLine {
        #[command(flatten)]
        args: crate::collector::CollectorArgs,
    }

    #[test]
    fn a_file_is_named_as_the_collector_names_it() {
        for (given, path) in [
            ("collector.yaml", "collector.yaml"),
            ("file:/etc/collector.yaml", "/etc/collector.yaml"),
            ("file:collector.yaml", "collector.yaml"),
            ("C:collector.yaml", "C:collector.yaml"),
            ("./env:x", "./env:x"),
        ] {
            assert_eq!(config_path(Path::new(given)), Ok(path.into()), "{given}");
        }
    }

    #[test]
    fn what_is_no_file_is_refused_without_being_shown() {
        for given in
            ["env:CONFIG", "yaml:exporters::otlp::headers::token: s3cret", "https://me:s3cret@host/x", "s3://b/k"]
        {
            let error = config_path(Path::new(given)).unwrap_err();
            assert!(error.contains("name a file") && !error.contains("s3cret"), "{error}");
        }
    }

    #[test]
    fn gates_are_taken_with_a_warning() {
        let parse = |gates: &[&str]| {
            let line = ["collector", "--config", "c.yaml"].iter().chain(gates);
            CommandLine::try_parse_from(line).map(|line| gates_warning(&line.args.feature_gates))
        };
        assert_eq!(parse(&[]).unwrap(), None);
        for gates in
            [&["--feature-gates=a,-b"][..], &["--feature-gates", "-a"], &["--feature-gates=a", "--feature-gates=b"]]
        {
            assert!(parse(gates).unwrap().unwrap().contains("no gates"), "{gates:?}");
        }
        let record = "--feature-gates=a,+processor.tailsamplingprocessor.recordpolicy";
        assert!(parse(&[record]).unwrap().unwrap().contains("`record_policy`"));
    }
}
