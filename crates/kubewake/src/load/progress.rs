//! A progress bar on terminals.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use indicatif::{ProgressBar, ProgressStyle};

use super::worker::LoadRun;

/// Frequent enough to look alive, too rare to affect the measurement.
const REFRESH_INTERVAL: Duration = Duration::from_millis(200);

/// Shows the progress of a run until it is dropped. indicatif hides itself where standard error is no terminal.
pub(crate) async fn show_progress(run: Arc<LoadRun>, expected_items: Option<u64>) {
    let bar = ProgressBar::new(expected_items.unwrap_or(0));
    let template = if expected_items.is_some() { "{bar:40} {pos}/{len} {msg}" } else { "{spinner} {pos} {msg}" };
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
    let mut last = 0;
    loop {
        tokio::time::sleep(REFRESH_INTERVAL).await;
        let now = run.acknowledged.load(Ordering::Relaxed);
        bar.set_message(format!("{:.0}/s", (now - last) as f64 / REFRESH_INTERVAL.as_secs_f64()));
        bar.set_position(now);
        last = now;
    }
}
