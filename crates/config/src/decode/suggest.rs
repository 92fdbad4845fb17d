//! What was probably meant.

/// So many known words are compared and shown; a person reads no more, and a hostile document may define any number.
pub(crate) const MAX_KNOWN: usize = 50;

/// Longer words are nobody's typing error, and comparing them would take long.
const MAX_LENGTH: usize = 64;

/// The known word that is closest to `word`, if it is close enough to be meant.
pub(crate) fn closest<'k>(word: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    if word.is_empty() || word.len() > MAX_LENGTH {
        return None;
    }
    let word = word.to_ascii_lowercase();
    known
        .into_iter()
        .filter(|candidate| word.len().abs_diff(candidate.len()) <= tolerated(&word, candidate))
        .map(|candidate| (distance(&word, &candidate.to_ascii_lowercase()), candidate))
        .filter(|(distance, candidate)| *distance <= tolerated(&word, candidate))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// How far two words may be apart for the one to be meant by the other.
fn tolerated(a: &str, b: &str) -> usize {
    1.max(a.len().min(b.len()) / 3)
}

/// Help for an unknown word: what was meant, if that can be guessed, and all there is, after a label: `known fields`.
pub(crate) fn help(word: &str, known: &[&str], label: &str) -> String {
    let mut sorted: Vec<&str> = known.iter().copied().filter(|word| !word.is_empty()).collect();
    sorted.sort_unstable();
    sorted.dedup();
    let more = if sorted.len() > MAX_KNOWN { ", …" } else { "" };
    sorted.truncate(MAX_KNOWN);
    let all = match sorted.is_empty() {
        true => format!("there are no {label}"),
        false => format!("{label}: {}{more}", sorted.join(", ")),
    };
    match closest(word, sorted) {
        Some(meant) => format!("did you mean `{meant}`? {}", capital(&all)),
        None => all,
    }
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map(|first| first.to_ascii_uppercase()).into_iter().chain(letters).collect()
}

/// How many letters must be added, removed, replaced or swapped with their neighbour.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, y) in b.iter().enumerate() {
            let at = |row: &[usize], index: usize| row.get(index).copied().unwrap_or(usize::MAX / 2);
            let mut best = (at(&last, j) + usize::from(x != y)).min(at(&last, j + 1) + 1).min(at(&row, j) + 1);
            let swapped = i > 0 && j > 0 && a.get(i - 1) == Some(y) && b.get(j - 1) == Some(x);
            if swapped {
                best = best.min(at(&before, j - 1) + 1);
            }
            row.push(best);
        }
        before = std::mem::replace(&mut last, row);
    }
    last.last().copied().unwrap_or(0)
}
