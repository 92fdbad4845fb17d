//! A report for people.

use super::line::{Line, Outcome, Report};
use crate::output::{Screen, Tone, number::count, text::safe};

pub(super) fn report(report: &Report, screen: &Screen) -> String {
    let mut drawn = String::new();
    for section in &report.sections {
        drawn += &format!("{}\n", screen.paint(Tone::Strong, section.name));
        section.lines.iter().for_each(|it| drawn += &line(it, screen));
        drawn.push('\n');
    }
    drawn + &verdict(report, screen)
}

fn line(line: &Line, screen: &Screen) -> String {
    let mark = match line.outcome {
        Outcome::Passed => screen.paint(Tone::Good, "✓"),
        Outcome::Warned => screen.paint(Tone::Warning, "!"),
        Outcome::Failed => screen.paint(Tone::Bad, "✗"),
    };
    let detail = if line.detail.is_empty() { String::new() } else { format!(": {}", safe(&line.detail)) };
    let code = screen.paint(Tone::Dim, line.code.id);
    let mut drawn = format!("{mark} {code} {}{detail}\n", line.code.title);
    for mend in line.mend.lines() {
        drawn += &format!("    {} {}\n", screen.paint(Tone::Dim, "→"), safe(mend));
    }
    drawn
}

fn verdict(report: &Report, screen: &Screen) -> String {
    let number = |outcome| report.lines().filter(|line| line.outcome == outcome).count() as u64;
    let (failed, warned) = (number(Outcome::Failed), number(Outcome::Warned));
    let warnings = if warned == 0 { String::new() } else { format!(", {}", count(warned, "warning")) };
    match failed {
        0 => screen.paint(Tone::Good, "All is well") + &warnings + "\n",
        failed => screen.paint(Tone::Bad, &format!("{} failed", count(failed, "check"))) + &warnings + "\n",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::{code, line::Section};

    #[test]
    fn every_line_says_what_was_found_and_what_to_do() {
        let lines = vec![
            Line::passed(code::KW301, "2/2 pods"),
            Line::passed(code::KW302, ""),
            Line::warned(code::KW402, "it ends in 3 d", "kubectl logs a"),
            Line::failed(code::KW403, "refused\u{1b}[1m", "first this\nthen that"),
        ];
        let report = Report { sections: vec![Section { name: "Operator", lines }] };
        let expected = "\
Operator
✓ KW301 the operator runs: 2/2 pods
✓ KW302 one operator leads
! KW402 its certificate is good: it ends in 3 d
    → kubectl logs a
✗ KW403 it answers: refused\\u{1b}[1m
    → first this
    → then that

1 check failed, 1 warning
";
        assert_eq!(super::report(&report, &Screen::plain(80)), expected);
        assert_eq!(super::report(&Report::default(), &Screen::plain(80)), "All is well\n");
        let document = serde_json::to_value(report.document()).unwrap();
        assert_eq!(document["success"], false);
        assert_eq!(document["sections"][0]["lines"][3]["result"], "failed");
    }
}
