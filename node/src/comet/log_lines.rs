//! CometBFT's log lines in ours: one event a line, its level kept.
//!
//! With `log_format = "json"` a line is `{"_msg": …, "level": …, "module": …, "ts": …, …}`; anything else (a Go panic, a
//! usage text) is passed on as a warning.

use serde_json::{Map, Value};

/// Emits one line of the child's output.
pub(super) fn emit(line: &str) {
    if line.trim().is_empty() {
        return;
    }
    let Some(line) = Line::parse(line) else {
        tracing::warn!(target: "cometbft", "{line}");
        return;
    };
    let Line {
        level,
        module,
        message,
        fields,
    } = line;
    match level {
        Level::Debug => tracing::debug!(target: "cometbft", module, fields, "{message}"),
        Level::Detail => tracing::debug!(target: "cometbft", module, fields, "{message}"),
        Level::Info => tracing::info!(target: "cometbft", module, fields, "{message}"),
        Level::Error => tracing::error!(target: "cometbft", module, fields, "{message}"),
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Level {
    Debug,
    /// What CometBFT says at info about every block or service: our own lines tell it.
    Detail,
    Info,
    Error,
}

#[derive(Debug, PartialEq, Eq)]
struct Line {
    level: Level,
    module: String,
    message: String,
    fields: String,
}

impl Line {
    fn parse(line: &str) -> Option<Self> {
        let mut object: Map<String, Value> = serde_json::from_str(line).ok()?;
        let mut take = |key: &str| match object.remove(key) {
            Some(Value::String(text)) => text,
            Some(other) => other.to_string(),
            None => String::new(),
        };
        let (level, module, kind) = (take("level"), take("module"), take("_msg"));
        take("ts");
        // Starts and stops of services carry their text apart.
        let service = kind == "service start" || kind == "service stop";
        let message = if service { take("msg") } else { kind };
        let level = match level.as_str() {
            "debug" => Level::Debug,
            "error" => Level::Error,
            "info" if service || is_detail(&module) => Level::Detail,
            "info" => Level::Info,
            _ => return None,
        };
        let fields = object
            .iter()
            .map(|(key, value)| match value {
                Value::String(text) => format!("{key}={text}"),
                other => format!("{key}={other}"),
            })
            .collect::<Vec<_>>()
            .join(" ");
        Some(Self {
            level,
            module,
            message,
            fields,
        })
    }
}

/// Parts that speak several times a block, or at length while starting.
fn is_detail(module: &str) -> bool {
    matches!(module, "consensus" | "state" | "mempool" | "pex" | "events")
}

#[cfg(test)]
mod tests;
