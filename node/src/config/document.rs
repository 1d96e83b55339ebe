//! Writes a configuration as a documented file: every key with its comment, from the same source as the struct.

use super::{
    Config, ConsensusConfig, LogConfig, NodeConfig, PoolConfig, RpcConfig, Section, StorageConfig,
};

/// The text of `cloister.toml` for this configuration.
pub fn render(config: &Config) -> String {
    let mut text = String::from(
        "# Configuration of a cloister node. Every key is listed with its meaning; a key left out has the value\n\
         # that `cloister init` writes. CLOISTER__SECTION__KEY in the environment overrides a key.\n\
         # Relative paths are below the home folder.\n",
    );
    render_section::<NodeConfig>(&config.node, &mut text);
    render_section::<ConsensusConfig>(&config.consensus, &mut text);
    render_section::<StorageConfig>(&config.storage, &mut text);
    render_section::<PoolConfig>(&config.pool, &mut text);
    render_section::<RpcConfig>(&config.rpc, &mut text);
    render_section::<LogConfig>(&config.log, &mut text);
    text
}

fn render_section<S: Section>(section: &S, text: &mut String) {
    let values = toml::Table::try_from(section)
        .expect("sections hold only text, numbers, lists and truth values");
    text.push('\n');
    comment(S::DOC, text);
    text.push_str(&format!("[{}]\n", S::NAME));
    for (key, doc) in S::KEYS {
        text.push('\n');
        comment(doc, text);
        match values.get(*key) {
            Some(value) => text.push_str(&format!("{key} = {value}\n")),
            // A key that may be absent is shown, so that the reader finds it.
            None => text.push_str(&format!("# {key} =\n")),
        }
    }
}

fn comment(lines: &[&str], text: &mut String) {
    for line in lines {
        text.push('#');
        text.push_str(line);
        text.push('\n');
    }
}
