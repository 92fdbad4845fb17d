//! Renders a report as text.

use super::report::{CheckLine, CheckOutcome, CheckReport};
use crate::output::{TerminalLayout, TextStyle, text::sanitize, units::format_count};

pub(super) fn render_report(report: &CheckReport, screen: &TerminalLayout) -> String {
    let mut drawn = String::new();
    for section in &report.sections {
        drawn += &format!("{}\n", screen.paint(TextStyle::Strong, section.name));
        section.lines.iter().for_each(|it| drawn += &render_line(it, screen));
        drawn.push('\n');
    }
    drawn + &render_summary(report, screen)
}

fn render_line(line: &CheckLine, screen: &TerminalLayout) -> String {
    let mark = match line.outcome {
        CheckOutcome::Passed => screen.paint(TextStyle::Good, "✓"),
        CheckOutcome::Warned => screen.paint(TextStyle::Warning, "!"),
        CheckOutcome::Failed => screen.paint(TextStyle::Bad, "✗"),
    };
    let detail = if line.detail.is_empty() { String::new() } else { format!(": {}", sanitize(&line.detail)) };
    let code = screen.paint(TextStyle::Dim, line.code.id);
    let mut drawn = format!("{mark} {code} {}{detail}\n", line.code.title);
    for mend in line.mend.lines() {
        drawn += &format!("    {} {}\n", screen.paint(TextStyle::Dim, "→"), sanitize(mend));
    }
    drawn
}

fn render_summary(report: &CheckReport, screen: &TerminalLayout) -> String {
    let number = |outcome| report.lines().filter(|line| line.outcome == outcome).count() as u64;
    let failed = number(CheckOutcome::Failed);
    let warned = number(CheckOutcome::Warned);
    let warnings = if warned == 0 { String::new() } else { format!(", {}", format_count(warned, "warning")) };
    match failed {
        0 if warned == 0 => screen.paint(TextStyle::Good, "All checks passed") + "\n",
        0 => screen.paint(TextStyle::Good, "No check failed") + &warnings + "\n",
        failed => screen.paint(TextStyle::Bad, &format!("{} failed", format_count(failed, "check"))) + &warnings + "\n",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::{codes, report::CheckSection};

    #[test]
    fn every_line_says_what_was_found_and_what_to_do() {
        let lines = vec![
            CheckLine::passed(codes::KW301, "2/2 pods"),
            CheckLine::passed(codes::KW302, ""),
            CheckLine::warned(codes::KW402, "the certificate expires in 3 d", "kubectl logs a"),
            CheckLine::failed(codes::KW403, "refused\u{1b}[1m", "first this\nthen that"),
        ];
        let report = CheckReport { sections: vec![CheckSection { name: "Operator", lines }] };
        let expected = "\
Operator
✓ KW301 the operator runs: 2/2 pods
✓ KW302 one operator leads
! KW402 the certificate of the operator's webhook is valid: the certificate expires in 3 d
    → kubectl logs a
✗ KW403 the operator's webhook answers: refused\\u{1b}[1m
    → first this
    → then that

1 check failed, 1 warning
";
        assert_eq!(super::render_report(&report, &TerminalLayout::plain(80)), expected);
        assert_eq!(super::render_report(&CheckReport::default(), &TerminalLayout::plain(80)), "All checks passed\n");
        let document = serde_json::to_value(report.to_document()).unwrap();
        assert_eq!(document["success"], false);
        assert_eq!(document["sections"][0]["lines"][3]["result"], "failed");
    }
}
