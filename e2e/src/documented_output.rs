//! Compares the output in a document with the output of a program.
//!
//! Every line in the document must be among the lines of the program. Words are the same, except that
//!
//! - `…` stands for any part of a word, and at the end of a line for the rest of it; a line of its own for any
//!   lines;
//! - a word with a digit stands for any other one, and units are ignored: times, counts, ids and addresses
//!   differ from run to run;
//! - lines of trees and bars are ignored, and so is the amount of white space.

const UNITS: [&str; 10] = ["ns", "µs", "ms", "s", "m", "h", "d", "B", "KiB", "MiB"];

/// The lines of the document that the program did not print.
pub fn missing_lines<'a>(shown: &'a str, said: &str) -> Vec<&'a str> {
    let said: Vec<Vec<&str>> = said.lines().map(words).collect();
    let is_said = |line: &&str| said.iter().any(|said| matches_words(&words(line), said));
    shown.lines().filter(|line| !matches!(line.trim(), "" | "…")).filter(|line| !is_said(line)).collect()
}

fn words(line: &str) -> Vec<&str> {
    let draws = |letter: char| letter.is_whitespace() || letter == '·' || ('\u{2500}'..='\u{259f}').contains(&letter);
    let bare = line.split(draws).map(|word| word.trim_end_matches([',', ':', ';']));
    bare.filter(|word| !word.is_empty() && !UNITS.contains(word)).collect()
}

fn matches_words(shown: &[&str], said: &[&str]) -> bool {
    match (shown, said) {
        (["…"], _) | ([], []) => true,
        ([first, shown @ ..], [word, said @ ..]) => matches_word(first, word) && matches_words(shown, said),
        _ => false,
    }
}

fn matches_word(shown: &str, said: &str) -> bool {
    let has_digit = |word: &str| word.contains(|letter: char| letter.is_ascii_digit());
    match shown.split_once('…') {
        Some((begin, end)) => said.strip_prefix(begin).is_some_and(|rest| rest.trim_end_matches('…').ends_with(end)),
        None => shown == said || (has_digit(shown) && has_digit(said)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_bars_and_spaces_do_not_count() {
        let said = "✓ cluster     1.6 s  https://127.0.0.1:6443, 3 nodes\n  │├apply ChildA    21 ms    ██\n";
        assert!(
            missing_lines("✓ cluster  0.0 s  https://127.0.0.1:1234, 3 nodes\n└apply ChildA  210 µs ▌\n", said)
                .is_empty()
        );
    }

    #[test]
    fn words_do() {
        assert_eq!(missing_lines("default Ready 1/1\n", "default Degraded 1/1\n"), ["default Ready 1/1"]);
        assert_eq!(missing_lines("default Ready\n", "default Ready 1/1\n").len(), 1);
        assert_eq!(missing_lines("a\nb\n", "b\n"), ["a"]);
    }

    #[test]
    fn dots_stand_for_anything() {
        let said = "led by kubewake-operator-abc\nexport KUBECONFIG=/home/me/up/kubeconfig\nknown are A, B, Balanc…\n";
        let shown = "…\nled by kubewake-operator-…\n\nexport KUBECONFIG=…/kubeconfig\nknown are A, …\n";
        assert!(missing_lines(shown, said).is_empty());
        assert_eq!(missing_lines("led by kubewake-webhook-…\n", said).len(), 1);
    }
}
