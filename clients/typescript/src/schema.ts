// Generated from the OpenAPI document by `python -m tests.tidy.generate_typescript_schema`. Do not edit.
export interface paths {
    "/v1/agents/{agent_id}/remember": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Remember
         * @description Store a batch of messages durably and acknowledge it. Its memories are made soon after.
         */
        post: operations["remember"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/agents/{agent_id}/recall": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Recall
         * @description Return what keywords and focus bring to mind, or the answer to a query, as text.
         */
        post: operations["recall"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/agents/{agent_id}/search": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Search
         * @description Return the memories that answer a query, best first. Reads only.
         */
        post: operations["search"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/agents/{agent_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get Agent
         * @description Return the agent: parameters, counts, owed passes and waiting batches.
         */
        get: operations["getAgent"];
        /**
         * Open Agent
         * @description Create the agent, or return it if it exists with the same parameters.
         */
        put: operations["openAgent"];
        post?: never;
        /**
         * Delete Agent
         * @description Delete an agent with all its data. Irreversible.
         */
        delete: operations["deleteAgent"];
        options?: never;
        head?: never;
        /**
         * Update Agent
         * @description Change parameters of an agent; null restores the daemon's default.
         */
        patch: operations["updateAgent"];
        trace?: never;
    };
    "/v1/agents/{agent_id}/stats": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get Stats
         * @description Return how much the agent has stored, exactly or with differential privacy.
         */
        get: operations["getStats"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/agents": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List Agents
         * @description List the agents within the caller's reach, open or not. No agent is opened.
         */
        get: operations["listAgents"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/agents/{agent_id}/close": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Close Agent
         * @description Finish the running job, write everything to disk and close the agent until the next request opens it.
         */
        post: operations["closeAgent"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/agents/{agent_id}/clear": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Clear Agent
         * @description Remove everything that an agent has stored, and keep its id and its parameters. Irreversible.
         */
        post: operations["clearAgent"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/agents/{agent_id}/batches": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List Batches
         * @description List batches by number.
         */
        get: operations["listBatches"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/agents/{agent_id}/batches/{batch_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get Batch
         * @description Return the state of a batch. BATCH_NOT_FOUND if its status is no longer kept.
         */
        get: operations["getBatch"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/agents/{agent_id}/batches/{batch_id}/retry": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Retry Batch
         * @description Return a parked batch to the inbox and reset its attempts. BATCH_NOT_PARKED otherwise.
         */
        post: operations["retryBatch"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/agents/{agent_id}/flush": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Flush
         * @description Wait until accepted batches are digested; with `passes`, `vectors` and `extraction` for those too.
         */
        post: operations["flush"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/agents/{agent_id}/compress": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Compress
         * @description Add compression passes to those the agent owes. TOO_MANY_PASSES beyond its limit.
         */
        post: operations["compress"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/agents/{agent_id}/focus": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get Focus
         * @description Return the memories and the entities in focus, newest first.
         */
        get: operations["getFocus"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/agents/{agent_id}/focus/{node_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        /**
         * Focus Node
         * @description Move a memory or an entity to the front of the focus, as if it had just been mentioned.
         */
        put: operations["focusNode"];
        post?: never;
        /**
         * Unfocus Node
         * @description Remove a memory or an entity from the focus. Its links decay from its next scan; its content stays as it is.
         */
        delete: operations["unfocusNode"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/agents/{agent_id}/entities": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List Entities
         * @description List entities by id: name, and how many memories of each live and are forgotten.
         */
        get: operations["listEntities"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/agents/{agent_id}/messages": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List Messages
         * @description List stored messages in the order of arrival. Erased messages are left out.
         */
        get: operations["listMessages"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/agents/{agent_id}/messages/{message}/attachments/{index}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get Attachment
         * @description Return an attachment as a file. ATTACHMENT_NOT_FOUND if there is none, or it is deleted or expired.
         */
        get: operations["getAttachment"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/agents/{agent_id}/nodes": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List Nodes
         * @description List living memories by id, entities, concepts, or several of them; or the nodes with given ids.
         */
        get: operations["listNodes"];
        put?: never;
        /**
         * Create Node
         * @description Create one memory from the given text, at once and without a language model.
         */
        post: operations["createNode"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/agents/{agent_id}/nodes/{node_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get Node
         * @description Return a memory, an entity or a concept with its links. NODE_FORGOTTEN if it existed once, or NODE_NOT_FOUND.
         */
        get: operations["getNode"];
        put?: never;
        post?: never;
        /**
         * Delete Node
         * @description Delete one memory with its links and its source text, or the rest of a message without memories. Irreversible.
         */
        delete: operations["deleteNode"];
        options?: never;
        head?: never;
        /**
         * Update Node
         * @description Correct a memory. INVALID_VALUE for a statement or a concept, NODE_NOT_FOUND if it is not a living memory.
         */
        patch: operations["updateNode"];
        trace?: never;
    };
    "/v1/agents/{agent_id}/links": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List Links
         * @description List live links by source, with their current strength.
         */
        get: operations["listLinks"];
        put?: never;
        /**
         * Create Link
         * @description Create a link between two living nodes, or set its strength. It decays like every other link.
         */
        post: operations["createLink"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/agents/{agent_id}/map": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get Map
         * @description Return living nodes and their links as columns of numbers, for a picture of the whole memory.
         */
        get: operations["getMap"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/agents/{agent_id}/history": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get History
         * @description Return when memories were made, shortened and forgotten, as columns of numbers.
         */
        get: operations["getHistory"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/agents/{agent_id}/forecast": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Forecast
         * @description Return what the next passes will shorten and forget, if nothing is mentioned again and the parameters stay.
         */
        post: operations["forecast"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/agents/{agent_id}/nodes/{node_id}/history": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get Node History
         * @description Return the life of a memory or statement, also of a forgotten one.
         */
        get: operations["getNodeHistory"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/agents/{agent_id}/nodes/{node_id}/pin": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        /**
         * Pin Node
         * @description Pin a memory: it is neither shortened nor forgotten until it is unpinned. Lost text does not come back.
         */
        put: operations["pinNode"];
        post?: never;
        /**
         * Unpin Node
         * @description Unpin a memory. Its links with entities decay from now on.
         */
        delete: operations["unpinNode"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/agents/{agent_id}/nodes/delete": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Delete Nodes
         * @description Delete many memories, a few at a time, and report the outcome of each. Irreversible.
         */
        post: operations["deleteNodes"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/agents/{agent_id}/forget": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Forget Memories
         * @description Forget a selection permanently: memories, their sources and the bytes on disk. Irreversible.
         */
        post: operations["forgetMemories"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/agents/{agent_id}/audit": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List Audit Records
         * @description List the records of an agent's audit log: actor, action, time and counts.
         */
        get: operations["listAuditRecords"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/agents/{agent_id}/audit/verify": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Verify Audit
         * @description Check that an agent's audit log is intact, and whether texts were erased.
         */
        post: operations["verifyAudit"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/erased-agents": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List Erased Agents
         * @description List the records of erased agents by number. One id may have several: it can be erased more than once.
         */
        get: operations["listErasedAgents"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/erased-agents/verify": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Verify Erased Agents
         * @description Check that the log of erased agents is intact, and whether texts were among the erased data.
         */
        post: operations["verifyErasedAgents"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/agents/{agent_id}/backup": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Backup Agent
         * @description Return the agent as one backup file, also while it is at work. It contains every batch accepted before.
         */
        get: operations["backupAgent"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/agents/{agent_id}/export": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Export Agent
         * @description Return the agent as JSON lines, also while it is at work.
         */
        get: operations["exportAgent"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/agents/{agent_id}/restore": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Restore Agent
         * @description Restore an agent from a backup or an export, sent as the body.
         */
        post: operations["restoreAgent"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/agents/{agent_id}/events": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Watch Events
         * @description Stream the events of an agent's memory. Errors in the request are reported before the stream begins.
         */
        get: operations["watchEvents"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/agents/{agent_id}/statements": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List Statements
         * @description List statements by id, planned ones last, at a time, as they were known at a time.
         */
        get: operations["listStatements"];
        put?: never;
        /**
         * Create Statement
         * @description Store a statement. It is durable and searchable at once; the agent is created if it does not exist.
         */
        post: operations["createStatement"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/agents/{agent_id}/statements/{node_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get Statement
         * @description Return a statement with its evidence.
         */
        get: operations["getStatement"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        /**
         * Correct Statement
         * @description Correct a statement. The old one stays in the history as corrected. An old id means the last correction.
         */
        patch: operations["correctStatement"];
        trace?: never;
    };
    "/v1/agents/{agent_id}/statements/{node_id}/history": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get Statement History
         * @description Return all versions of the topic of a statement: what was true when, and what was corrected or retracted.
         */
        get: operations["getStatementHistory"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/agents/{agent_id}/statements/{node_id}/retract": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Retract Statement
         * @description Retract a statement: it was never true, and a statement that it ended is current again. It stays in the history.
         */
        post: operations["retractStatement"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/agents/{agent_id}/statements/search": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Search Statements
         * @description Find statements that answer a question, best first.
         */
        post: operations["searchStatements"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/agents/{agent_id}/nodes/{node_id}/why": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get Causes
         * @description Return the paths of links from a node to its causes, the strongest first.
         */
        get: operations["getCauses"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/agents/{agent_id}/nodes/{node_id}/importance": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        /**
         * Set Importance
         * @description Set the strength of the links between a memory or a statement and its entities.
         */
        put: operations["setImportance"];
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/agents/{agent_id}/profile": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get Profile
         * @description Return the knowledge about a person or a thing, by topic, with the words that support it.
         */
        get: operations["getProfile"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/agents/{agent_id}/conflicts": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List Conflicts
         * @description List the statements that contradict each other, for review.
         */
        get: operations["listConflicts"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/agents/{agent_id}/conflicts/resolve": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Resolve Conflict
         * @description Settle a conflict in favour of one statement. The other one ends and stays in the history.
         */
        post: operations["resolveConflict"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/agents/{agent_id}/merges": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List Merges
         * @description List names that may mean one person or thing, and what was decided. A proposal changes nothing by itself.
         */
        get: operations["listMerges"];
        put?: never;
        /**
         * Merge Entities
         * @description Treat two entities as one in every answer. UndoRuling separates them again, exactly.
         */
        post: operations["mergeEntities"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/agents/{agent_id}/merges/reject": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Reject Merge
         * @description Reject a proposal: the two names are not proposed again. UndoRuling takes the rejection back.
         */
        post: operations["rejectMerge"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/agents/{agent_id}/feedback": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Give Feedback
         * @description Pin a statement, or vote on it. A vote orders statements that contradict each other, and ends none.
         */
        post: operations["giveFeedback"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/agents/{agent_id}/rulings": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List Rulings
         * @description List the rulings in effect: merges, settled conflicts, corrections, retractions, pins, votes, inferred links.
         */
        get: operations["listRulings"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/agents/{agent_id}/rulings/{ruling_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /**
         * Undo Ruling
         * @description Undo a ruling: answers are then as if it had never been made. Rulings can be undone in any order.
         */
        delete: operations["undoRuling"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/agents/{agent_id}/consolidate": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Consolidate
         * @description Consolidate the statements of an agent now: list conflicts, and mark new statements as consolidated.
         */
        post: operations["consolidate"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/agents/{agent_id}/records/batch": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Batch Records
         * @description Read and write records in one transaction: all writes happen, in order, or none.
         */
        post: operations["batchRecords"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/tools": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List Tools
         * @description Return the declarations of the tools that a language model may call.
         */
        get: operations["listTools"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/tools/prompt": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get Tool Prompt
         * @description Return instructions on the tools, with examples, for the system prompt of a language model.
         */
        get: operations["getToolPrompt"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/agents/{agent_id}/tools/{name}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Call Tool
         * @description Perform the call of a tool as a language model sent it. Its arguments are read leniently.
         */
        post: operations["callTool"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/me": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get Me
         * @description Return what the caller's key allows: scopes, and the agents within its reach.
         */
        get: operations["getMe"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/model": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get Model
         * @description Return the current language model, whether it answers, and how its replies parse.
         */
        get: operations["getModel"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/scheduler": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get Scheduler
         * @description Return which agents compress now and which wait for a turn.
         */
        get: operations["getScheduler"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/metrics": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get Metrics
         * @description Return all metrics in the text format of Prometheus.
         */
        get: operations["getMetrics"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/healthz": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get Health
         * @description Return whether the process is alive; nothing about its work.
         */
        get: operations["getHealth"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/readyz": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get Readiness
         * @description Return whether requests are accepted: yes if ready or degraded (200), no if unavailable (503).
         */
        get: operations["getReadiness"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
}
export type webhooks = Record<string, never>;
export interface components {
    schemas: {
        /** @description The shortenings and ends to come, as columns. */
        AgentForecast: {
            /** @description Completed compression passes since creation. */
            pass_number: number;
            /** @description Passes from now on that the forecast contains: those requested, or those that were computed within 4 seconds. */
            passes: number;
            /** @description Assumptions of the forecast. */
            assumes: components["schemas"]["ForecastAssumptions"];
            /** @description Shortenings of memories that live now. */
            shortened: components["schemas"]["ForecastShortened"];
            /** @description Memories and statements that will be forgotten. */
            forgotten: components["schemas"]["ForecastForgotten"];
        };
        /** @description The lives of memories and statements, as columns. */
        AgentHistory: {
            /** @description The number of passes completed before the oldest event that is kept. Shortenings, focus and erasures of earlier passes are missing. */
            first_pass: number;
            /** @description Completed compression passes since creation. */
            passes: number;
            /** @description Whether the events since creation are kept. */
            complete: boolean;
            /** @description Number of the latest event that the page reflects. Follow the events after that of the first page. */
            last_event: number;
            /** @description Births, without those of deleted memories. */
            born: components["schemas"]["HistoryBorn"];
            /** @description Shortenings, without those of deleted memories. */
            shortened: components["schemas"]["HistoryShortened"];
            /** @description Memories and statements that a pass forgot. */
            forgotten: components["schemas"]["HistoryForgotten"];
            /** @description Deletions of memories that lived. */
            erased: components["schemas"]["HistoryErased"];
            /** @description Changes of the focus. */
            focus: components["schemas"]["HistoryFocus"];
            /** @description Empty on the last page. */
            next_page_token: string;
        };
        /** @description The current state of an agent. */
        AgentInfo: {
            /**
             * @description The agent's id.
             * @example ann
             */
            agent_id: string;
            /** @description Creation time, ms since the epoch. */
            created_at: number;
            /** @description The current parameters. */
            parameters: components["schemas"]["AgentParameters"];
            /** @description Number of living memories, entities, links and stored messages. */
            counts: components["schemas"]["Counts"];
            /**
             * @description Memories in focus, newest first.
             * @example [
             *       "n3",
             *       "n2"
             *     ]
             */
            focus: string[];
            /** @description Accepted batches not yet digested. */
            pending_batches: number;
            /** @description Batches parked after repeated failures. */
            parked_batches: number;
            /** @description Compression passes owed, including the running one. */
            owed_passes: number;
            /** @description Completed compression passes since creation. */
            finished_passes: number;
            /** @description Messages without vectors of the current embedding model; 0 without a model. */
            unembedded_messages: number;
        };
        /** @description An agent in a listing, which does not open it. */
        AgentListing: {
            /** @description The agent's id. */
            agent_id: string;
            /** @description Creation time, ms since the epoch. */
            created_at: number;
            /** @description Whether the agent is open. */
            open: boolean;
            /** @description If the agent is not open: as of its last close. */
            counts: components["schemas"]["Counts"];
        };
        /** @description Living nodes and their links, as columns. */
        AgentMap: {
            /** @description Completed compression passes since creation. */
            pass_number: number;
            /** @description Number of the latest event that the page reflects. Follow the events after that of the first page. */
            last_event: number;
            /** @description Number of the oldest stored event, or of the next one if none is stored. */
            first_event: number;
            /** @description Number of the next new node. Lower ones that no page has are forgotten. */
            next_node: number;
            /** @description Numbers of the nodes in focus: memories, then entities, newest first. */
            focus: number[];
            /**
             * @description Kinds of the nodes: episode or your own for memories, entity, and the kinds of statements.
             * @example [
             *       "episode",
             *       "fact",
             *       "entity"
             *     ]
             */
            kinds: string[];
            /** @description Living memories, statements and entities. */
            nodes: components["schemas"]["MapNodes"];
            /**
             * @description Names of the relations of the links.
             * @example [
             *       "",
             *       "next"
             *     ]
             */
            relations: string[];
            /** @description The live links from the nodes; empty unless requested. */
            links: components["schemas"]["MapLinks"];
            /** @description Empty on the last page. */
            next_page_token: string;
        };
        /** @description A page of agents. */
        AgentPage: {
            /** @description The agents of this page. */
            agents: components["schemas"]["AgentListing"][];
            /** @description Empty on the last page. */
            next_page_token: string;
        };
        /** @description How one agent remembers and forgets (memory model, section 7). */
        AgentParameters: {
            /**
             * @description Most memories in focus, and most entities.
             * @default 5
             */
            focus_limit: number;
            /**
             * @description both: memories and entities move into focus; nodes: memories only, and no entities are created.
             * @default both
             * @enum {string}
             */
            focus_policy: "both" | "nodes";
            /**
             * @description A link's strength is multiplied by this each time its source is scanned.
             * @default 0.97
             */
            decay_rate: number;
            /**
             * @description Strength of the links between neighbours within a batch.
             * @default 0.5
             */
            link_initial_strength: number;
            /**
             * @description A link weaker than this is broken.
             * @default 0.01
             */
            link_break_threshold: number;
            /**
             * @description A memory that would shrink below this many characters is forgotten.
             * @default 5
             */
            delete_threshold: number;
            /**
             * @description Content is shortened only if it loses at least this share of its length.
             * @default 0.25
             */
            min_shrink: number;
            /**
             * @description Most entities that a memory is linked with: its first keywords that are names.
             * @default 3
             */
            entities_per_memory: number;
            /**
             * @description Newest memories of an entity in focus whose links do not decay.
             * @default 32
             */
            entity_memories: number;
            /**
             * @description Most passes until an entity is scanned again.
             * @default 3
             */
            entity_wait_max: number;
            /**
             * @description scan: every due node in every pass; slots: a bounded number of nodes.
             * @default scan
             * @enum {string}
             */
            strategy: "scan" | "slots";
            /**
             * @description Most memories under `slots`; at least focus_limit + 100 there. Entities do not count.
             * @default 10000
             */
            max_nodes: number;
            /**
             * @description Nodes drawn for one pass under `slots`.
             * @default 100
             */
            compression_batch_size: number;
            /**
             * @description Nodes drawn to find the least important one when all `slots` are used.
             * @default 16
             */
            slot_sample_size: number;
            /**
             * @description After k scans a node is due again 1 + floor(k x this) passes later; 0 = every pass.
             * @default 0.02
             */
            long_term_factor: number;
            /**
             * @description Hops of a recall that specifies no depth.
             * @default 2
             */
            default_search_depth: number;
            /**
             * @description Most memories in one answer; 0 means 10000.
             * @default 100
             */
            max_search_results: number;
            /**
             * @description Newest memories containing a keyword at which a recall starts.
             * @default 32
             */
            cue_memories: number;
            /**
             * @description Most pinned memories, which are neither shortened nor forgotten.
             * @default 100
             */
            max_pinned: number;
            /**
             * @description Whether a memory in which the user asks to remember it is pinned.
             * @default true
             */
            pin_on_request: boolean;
            /**
             * @description Whether a segment that is only a question becomes a memory.
             * @default false
             */
            remember_questions: boolean;
            /**
             * @description Language of the wording; auto decides by the text.
             * @default auto
             * @enum {string}
             */
            locale: "auto" | "zh" | "en";
            /**
             * @description When a memory is shown with its speaker.
             * @default auto
             * @enum {string}
             */
            speaker_prefix: "auto" | "always" | "never";
            /**
             * @description Whether system messages become memories.
             * @default false
             */
            digest_system: boolean;
            /**
             * @description Whether calls of tools and their output become memories.
             * @default false
             */
            digest_tools: boolean;
            /**
             * @description Most batches in the inbox, waiting or parked; beyond it, remember is refused.
             * @default 1000
             */
            max_queue_size: number;
            /**
             * @description Most compression passes that an agent can owe; further ones are merged.
             * @default 100
             */
            max_owed_passes: number;
            /**
             * @description One compression pass is owed for every so many tokens of new memories; 0: one for each batch.
             * @default 0
             */
            pass_every_tokens: number;
            /**
             * @description Recommended longest segment, in characters.
             * @default 200
             */
            segment_max_chars: number;
            /**
             * @description How long texts are kept after their digest: keep (for ever), days:N (N days after acceptance), evidence:N (as days:N, and longer while a true statement cites them), none. Their memories stay.
             * @default keep
             */
            retention: string;
            /**
             * @description Handling of personal data in new messages: off (no detection), tag (stored, with its positions), redact (replaced by its kind before anything is stored).
             * @default off
             * @enum {string}
             */
            pii: "off" | "tag" | "redact";
            /**
             * @description Whether text of recent recalls is removed from new messages.
             * @default true
             */
            drop_recalled: boolean;
            /**
             * @description Whether exact repetitions within a batch are dropped.
             * @default false
             */
            collapse_repeats: boolean;
            /**
             * @description Whether statements are extracted from messages of the user: by rules, by the language model, or by both (docs/knowledge.md).
             * @default off
             * @enum {string}
             */
            extraction: "off" | "rules" | "model" | "rules+model";
            /**
             * @description Most statements that are kept, since they are true in a lasting slot, or pinned.
             * @default 10000
             */
            max_statements: number;
            /**
             * @description Hours between two consolidations of the statements; 0: on request only.
             * @default 6
             */
            consolidation_interval_h: number;
            /**
             * @description propose: names that may mean one thing are only listed; auto: such names of things, never of people, are merged if their meaning is close.
             * @default propose
             * @enum {string}
             */
            merge_policy: "propose" | "auto";
            /**
             * @description Highest sum of the epsilons of counts with differential privacy.
             * @default 10
             */
            privacy_budget: number;
            /**
             * @description Time zone of dates in texts, and in which words such as today are read: a name of the IANA database.
             * @default UTC
             */
            time_zone: string;
        };
        /** @description How much an agent has stored. */
        AgentStats: {
            /** @description Stored messages. */
            messages: number;
            /** @description Living memories. */
            memories: number;
            /** @description Pinned ones among them. */
            pinned: number;
            /** @description Entities: names that memories are linked with. */
            entities: number;
            /** @description Links, dangling ones included; null with `epsilon`: one record may have thousands. */
            links: number | null;
            /** @description The privacy of these counts; null if they are exact. */
            epsilon: number | null;
            /** @description The agent's parameter: the highest sum of epsilons. */
            privacy_budget: number;
            /** @description The sum of the epsilons of all releases so far. */
            privacy_spent: number;
        };
        /** @description An attachment without its content. */
        AttachmentInfo: {
            /**
             * @description Its media type.
             * @example image/png
             */
            mime: string;
            /** @description SHA-256 of its content, in hexadecimal. */
            sha256: string;
            /** @description Bytes of its content. */
            size: number;
            /** @description The words that describe it. */
            caption: string;
            /** @description Parts of it. */
            regions: components["schemas"]["RegionInfo"][];
        };
        /** @description A page of an audit log. */
        AuditPage: {
            /** @description The records of this page. */
            records: components["schemas"]["AuditRecordInfo"][];
            /** @description Empty on the last page. */
            next_page_token: string;
        };
        /** @description One record of an audit log. */
        AuditRecordInfo: {
            /** @description Position in the chain, from 1. */
            number: number;
            /** @description Time, ms since the epoch. */
            at: number;
            /** @description Id of the caller's key; - if unknown. */
            actor: string;
            /**
             * @description created, parameters_changed, corrected, deleted, record_deleted, forgotten, passes_owed, renamed, restored, cleared, stats_released, ruled.
             * @example forgotten
             */
            action: string;
            /** @description Ids, names and counts; never content. */
            details: {
                [key: string]: unknown;
            };
            /** @description Number of keyed hashes of erased texts in this record. */
            proof_count: number;
            /** @description Hash of the previous record, in hexadecimal. */
            previous_hash: string;
            /** @description SHA-256 of `line`, in hexadecimal. */
            record_hash: string;
            /** @description The hashed text of the record. */
            line: string;
        };
        /** @description Whether an audit log is intact. */
        AuditVerified: {
            /** @description Whether every record is valid and follows the one before it. */
            intact: boolean;
            /** @description Number of consecutive valid records from the first. */
            records: number;
            /** @description Hash of the last of them, in hexadecimal; empty without any. */
            record_hash: string;
            /** @description Number of the first invalid record; 0 for none. */
            broken_record: number;
            /** @description The fault of that record. */
            problem: string;
            /** @description One result per text, in the order of the request. */
            texts: components["schemas"]["TextVerdict"][];
        };
        /** @description The current state of a batch. */
        BatchInfo: {
            /**
             * @description Id of the batch.
             * @example b1
             */
            batch_id: string;
            /**
             * @description waiting, digesting, digested or parked.
             * @example digested
             * @enum {string}
             */
            state: "waiting" | "digesting" | "digested" | "parked";
            /** @description Time of acceptance, ms since the epoch. */
            accepted_at: number;
            /** @description Time of digestion, ms since the epoch. */
            digested_at: number | null;
            /** @description Earliest time of the next try after a failure, ms since the epoch. */
            not_before: number | null;
            /** @description Number of its messages. */
            message_count: number;
            /** @description The conversation that the caller gave; empty without one. */
            conversation_id: string;
            /** @description Failed tries so far. */
            attempts: number;
            /** @description Why the last try failed. */
            last_error: string;
            /**
             * @description The memories made from it.
             * @example [
             *       "n1",
             *       "n2"
             *     ]
             */
            node_ids: string[];
            /**
             * @description Personal data found in it, by kind, tagged or redacted by the agent's `pii` policy.
             * @example {
             *       "email": 2
             *     }
             */
            pii: {
                [key: string]: number;
            };
            /**
             * @description Lines left out because a recall had just returned them.
             * @example 0
             */
            dropped_recalled: number;
            /**
             * @description Messages left out because they repeat an earlier one.
             * @example 0
             */
            collapsed: number;
            /**
             * @description State of the extraction of its statements: none (extraction is off), waiting, done, or by_rules (done by rules, because the replies of the model were unusable).
             * @example done
             * @enum {string}
             */
            extraction: "none" | "waiting" | "done" | "by_rules";
        };
        /** @description A page of batches. */
        BatchPage: {
            /** @description The batches of this page, in the order of their ids. */
            batches: components["schemas"]["BatchInfo"][];
            /** @description Empty on the last page. */
            next_page_token: string;
        };
        /** @description A node of a path, and the link between it and the node before it. */
        CausalStep: {
            /**
             * @description Id of the node.
             * @example n1
             */
            id: string;
            /**
             * @description Name of the link, as it was stored in either direction; empty for the start of the path.
             * @example causes
             */
            relation: string;
            /** @description Current strength of that link; 1 for the start of the path. */
            strength: number;
            /** @description Whether consolidation inferred that link. */
            inferred: boolean;
            /** @description episode, or the kind of the statement; empty for a forgotten node. */
            kind: string;
            /** @description State of the statement at this time, such as current or superseded; empty for a living memory; forgotten. */
            state: string;
            /** @description From when the statement is true, ms since the epoch; null for a memory. */
            since: number | null;
            /** @description The sentence; empty once the node is forgotten. */
            content: string;
        };
        /** @description A path from a node to its farthest known cause. */
        CausePath: {
            /** @description The node itself, then its cause, the cause of that, … */
            steps: components["schemas"]["CausalStep"][];
            /** @description The product of the strengths of its links. */
            strength: number;
            /** @description Whether any of its links was inferred. */
            inferred: boolean;
        };
        /** @description Why something is so. */
        Causes: {
            /** @description The strongest paths, at most 16; empty if no cause is known. */
            paths: components["schemas"]["CausePath"][];
            /** @description Whether a bound has left out further paths. */
            truncated: boolean;
        };
        /** @description The attachment whose caption a source quotes. */
        CitedAttachment: {
            /**
             * @description Id of its message.
             * @example m1
             */
            message: string;
            /** @description Its position among the attachments of the message, from 0. */
            index: number;
            /**
             * @description Its media type.
             * @example image/png
             */
            mime: string;
            /** @description The part of it that the caption describes; null for all of it. */
            region: components["schemas"]["RegionInfo"] | null;
        };
        /** @description The source of a memory, with the key of the whole text and a quote. */
        CitedSource: {
            /** @description The caller's own id of the message, empty if none was given. */
            message_id: string;
            /** @description Id of the batch of the message. */
            batch_id: string;
            /** @description Position of the message in its batch. */
            message_index: number;
            /** @description Offset of the slice in the message's UTF-8. */
            offset: number;
            /** @description Length of the slice in bytes. */
            length: number;
            /**
             * @description Role of the speaker.
             * @enum {string}
             */
            role: "user" | "assistant" | "system" | "tool";
            /** @description Name of the speaker; empty if none was given. */
            speaker: string;
            /** @description When it was said, if the caller gave a time; ms since the epoch. */
            timestamp: number | null;
            /** @description The conversation of the message; empty if none was given. */
            conversation_id: string;
            /** @description The message's metadata, over that of its batch. */
            metadata: {
                [key: string]: unknown;
            };
            /** @description Personal data in the slice, if the message was stored under the policy `tag`. */
            pii: components["schemas"]["PersonalData"][];
            /** @description The attachment whose caption the slice quotes; null for the message's own words. */
            attachment: components["schemas"]["CitedAttachment"] | null;
            /** @description SHA-256 of the message's text, in hexadecimal; empty if the text is deleted. */
            chunk_id: string;
            /** @description The text of the slice; empty if it is deleted. */
            quote: string;
        };
        /** @description The data that was removed. */
        Cleared: {
            /** @description The agent's id. */
            agent_id: string;
            /** @description Messages that were removed. */
            messages: number;
            /** @description Living memories that were removed. */
            memories: number;
        };
        /** @description The agent is closed. */
        Closed: {
            /** @description The agent's id. */
            agent_id: string;
            /** @description Whether it was open. */
            closed: boolean;
        };
        /** @description The passes owed now. */
        Compressing: {
            /** @description Compression passes owed, including the running one. */
            owed_passes: number;
        };
        /** @description Two statements that contradict each other; the one with the higher priority first. */
        ConflictInfo: {
            /** @description The statement with the higher priority. */
            first: components["schemas"]["StatementInfo"];
            /** @description The other one. */
            second: components["schemas"]["StatementInfo"];
        };
        /** @description A page of conflicts. */
        ConflictPage: {
            /** @description The conflicts of this page. */
            conflicts: components["schemas"]["ConflictInfo"][];
            /** @description Empty on the last page. */
            next_page_token: string;
        };
        /** @description The outcome of a consolidation. */
        Consolidated: {
            /** @description Whether nothing was changed. */
            dry_run: boolean;
            /** @description The steps, in order. */
            steps: components["schemas"]["ConsolidationStep"][];
        };
        /** @description Something that a step found. */
        ConsolidationFinding: {
            /** @description Ids of the statements or entities concerned. */
            node_ids: string[];
            /**
             * @description Description of the finding.
             * @example contradict each other
             */
            text: string;
        };
        /** @description Outcome of a step. */
        ConsolidationStep: {
            /**
             * @description staged, conflicts, causes, concepts, habits or tiers.
             * @example staged
             */
            step: string;
            /** @description Number of items that it looked at. */
            looked: number;
            /** @description Number of items that it changed, or would change. */
            changed: number;
            /** @description Findings of the step; at most 100. */
            findings: components["schemas"]["ConsolidationFinding"][];
        };
        /** @description The size of an agent. */
        Counts: {
            /** @description Living memories. */
            nodes: number;
            /** @description Entities: names that memories are linked with. */
            entities: number;
            /** @description Links, dangling ones included. */
            links: number;
            /** @description Stored messages. */
            messages: number;
        };
        /** @description A stored statement, and what it changed. */
        CreatedStatement: {
            /**
             * @description Id of its node.
             * @example n1
             */
            id: string;
            /**
             * @description Name of the entity that it is about.
             * @example user
             */
            subject: string;
            /**
             * @description Id of that entity.
             * @example n2
             */
            subject_id: string;
            /**
             * @description The known topic, or the caller's topic.
             * @example residence
             */
            slot: string;
            /**
             * @description The value.
             * @example Porto
             */
            object: string;
            /** @description Id of the entity that is the value; empty if none is. */
            object_id: string;
            /** @description fact, event, relation, opinion, preference, task or reflection. */
            kind: string;
            /** @description Whether it denies the value. */
            negated: boolean;
            /** @description asserted, reported or planned. */
            modality: string;
            /** @description current, contested, planned, superseded, ended, corrected, retracted or forgotten. */
            state: string;
            /**
             * @description staged (new), consolidated, or archived (forgotten).
             * @example staged
             */
            status: string;
            /** @description From when it is true, ms since the epoch. */
            since: number;
            /** @description Until when it is true, exclusive; null if open. */
            until: number | null;
            /** @description The words that give the time; empty if none do. */
            time_words: string;
            /** @description When it was said last, ms since the epoch. */
            told_at: number;
            /** @description When it was stored first, ms since the epoch. */
            known_at: number;
            /** @description Id of the statement that ended it; empty if none did. */
            superseded_by: string;
            /** @description Ids of the statements that contradict it at this time, oldest first; at most 16. */
            conflicts_with: string[];
            /** @description Confidence of the evidence, 0-1; further messages raise it. */
            confidence: number;
            /** @description The importance that was declared for it, 0-1. */
            importance: number;
            /** @description Order among statements that contradict each other. */
            priority: number;
            /** @description How much it matters now: its importance, how often and when it was said, feeling and votes. */
            weight: number;
            /** @description Whether it is pinned. */
            pinned: boolean;
            /** @description user, tool:KEY, rules@N or model:NAME. */
            author: string;
            /** @description private, team or public. */
            scope: string;
            /**
             * @description How firmly it is known: short (new), middle or long (said in several conversations).
             * @example short
             */
            tier: string;
            /** @description Further fields. */
            attributes: {
                [key: string]: string;
            };
            /** @description The sentence; empty once the statement is forgotten. */
            content: string;
            /** @description The words that support it, oldest first; at most 16. */
            quotes: components["schemas"]["Quote"][];
            /** @description False if an earlier statement already said it; its confidence has grown. */
            created: boolean;
            /** @description Ids of the statements that it has ended. */
            superseded: string[];
        };
        /** @description The items deleted with a memory, or from a message. */
        DeletedNode: {
            /**
             * @description The id from the request.
             * @example n1
             */
            node_id: string;
            /** @description Number of links from or to it. */
            links_removed: number;
            /** @description Bytes of source text removed from the archive. */
            bytes_withdrawn: number;
            /** @description Ids of other memories that cite its source text, which stays for them; at most 5. Delete these too to remove the text. */
            cited_by: string[];
        };
        /** @description The result for each memory, in the order of the request. */
        DeletedNodes: {
            /** @description One result for each id, in the order of the request. */
            results: components["schemas"]["NodeDeletion"][];
            /** @description How many were deleted. */
            deleted_count: number;
        };
        /** @description The current embedding model. */
        EmbedderInfo: {
            /**
             * @description multilingual, builtin, ollama, openai or off.
             * @example multilingual
             */
            kind: string;
            /**
             * @description Name of the model.
             * @example e5-small-q4
             */
            name: string;
            /** @description Whether it answers. */
            available: boolean;
            /** @description Why it does not answer; else empty. */
            detail: string;
        };
        /** @description The current state of an entity: a name that memories are linked with. */
        EntityInfo: {
            /**
             * @description Id of the node.
             * @example n2
             */
            id: string;
            /**
             * @description The name, as it was first said.
             * @example Lisbon
             */
            name: string;
            /** @description Living memories that a live link joins with it. */
            living_count: number;
            /** @description Forgotten memories that it still has a live link to. */
            forgotten_count: number;
            /** @description Whether it is in focus. */
            in_focus: boolean;
            /** @description Compression scans so far. */
            scan_count: number;
        };
        /** @description An entity that a live link joins with a memory. */
        EntityLink: {
            /**
             * @description Id of the entity.
             * @example n2
             */
            id: string;
            /**
             * @description Its name, as it was first said.
             * @example Lisbon
             */
            name: string;
            /**
             * @description Name of the relation.
             * @example about
             */
            relation: string;
            /** @description Current strength of the stronger of the two links between the memory and the entity. */
            strength: number;
        };
        /** @description A page of entities. */
        EntityPage: {
            /** @description The entities of this page, in the order of their ids. */
            entities: components["schemas"]["EntityInfo"][];
            /** @description Empty on the last page. */
            next_page_token: string;
        };
        /** @description The agent is deleted. */
        Erased: {
            /** @description The id of the deleted agent. */
            agent_id: string;
            /**
             * @description True: the agent and its data are deleted.
             * @default true
             */
            erased: boolean;
            /** @description Number of the deletion's record in the log of erased agents. */
            record_number: number;
            /** @description Hash of that record in hexadecimal; it covers all records before it. */
            record_hash: string;
        };
        /** @description A page of the log of erased agents. */
        ErasedAgentPage: {
            /** @description The records of this page, oldest first. */
            records: components["schemas"]["ErasedAgentRecord"][];
            /** @description Empty on the last page. */
            next_page_token: string;
        };
        /** @description One record of the log of erased agents. */
        ErasedAgentRecord: {
            /** @description Position in the chain, from 1. */
            number: number;
            /** @description Time, ms since the epoch. */
            at: number;
            /** @description Id of the caller's key; - if unknown. */
            actor: string;
            /**
             * @description agent_erased; replaced if another agent took its place; key_destroyed if its key was.
             * @example agent_erased
             */
            action: string;
            /** @description Ids, names and counts; never content. */
            details: {
                [key: string]: unknown;
            };
            /** @description Number of keyed hashes of erased texts in this record. */
            proof_count: number;
            /** @description Hash of the previous record, in hexadecimal. */
            previous_hash: string;
            /** @description SHA-256 of `line`, in hexadecimal. */
            record_hash: string;
            /** @description The hashed text of the record. */
            line: string;
            /**
             * @description The deleted agent; empty if the record is unreadable.
             * @example ann
             */
            agent_id: string;
        };
        /** @description The body of every error. */
        ErrorBody: {
            /** @description The error. */
            error: components["schemas"]["ErrorDetails"];
        };
        /** @description An error. */
        ErrorDetails: {
            /**
             * @description The HTTP status.
             * @example 400
             */
            code: number;
            /**
             * @description The gRPC code.
             * @example INVALID_ARGUMENT
             * @enum {string}
             */
            status: "ALREADY_EXISTS" | "DATA_LOSS" | "DEADLINE_EXCEEDED" | "FAILED_PRECONDITION" | "INTERNAL" | "INVALID_ARGUMENT" | "NOT_FOUND" | "PERMISSION_DENIED" | "RESOURCE_EXHAUSTED" | "UNAUTHENTICATED" | "UNAVAILABLE" | "UNIMPLEMENTED";
            /**
             * @description The error for people: the field, its value and what is allowed. The wording may change.
             * @example depth: 9 is not allowed; allowed: 0-8
             */
            message: string;
            /**
             * @description The reason code, for programs; see docs/errors.md.
             * @example INVALID_DEPTH
             */
            reason: ("AGENT_BEING_ERASED" | "AGENT_BEING_RESTORED" | "AGENT_BUSY" | "AGENT_CLOSING" | "AGENT_EXISTS" | "AGENT_ID_MISMATCH" | "AGENT_MOVING" | "AGENT_NOT_FOUND" | "AMBIGUOUS_MEMORY" | "ATTACHMENT_NOT_FOUND" | "ATTACHMENT_TOO_LARGE" | "BACKUP_OF_ANOTHER_AGENT" | "BACKUP_UNREADABLE" | "BATCH_NOT_DIGESTED" | "BATCH_NOT_FOUND" | "BATCH_NOT_PARKED" | "BODY_TOO_LARGE" | "CLUSTER_UNUSABLE" | "DATA_DIRECTORY_LOCKED" | "DATA_KEY_MISSING" | "EMPTY_MESSAGES" | "EVENTS_GONE" | "FORMAT_TOO_NEW" | "FORMAT_TOO_OLD" | "IDEMPOTENCY_KEYS_DIFFER" | "IDEMPOTENCY_KEY_REUSED" | "INSECURE_BIND" | "INTERNAL" | "INVALID_AGENT_ID" | "INVALID_DEPTH" | "INVALID_JSON" | "INVALID_KEY" | "INVALID_PAGE" | "INVALID_PARAMETERS" | "INVALID_VALUE" | "KEY_FILE_UNUSABLE" | "KEY_NOT_FOR_AGENT" | "LOG_BEHIND" | "MALFORMED_REQUEST" | "MASTER_KEY_REFUSED" | "MCP_NOT_INSTALLED" | "METADATA_TOO_LARGE" | "METHOD_NOT_ALLOWED" | "MISDIRECTED_REQUEST" | "MISSING_EXTRA" | "MISSING_FIELD" | "MISSING_KEY" | "NODE_FORGOTTEN" | "NODE_NOT_FOUND" | "NOT_A_STATEMENT" | "NOT_ENOUGH_LOG_SERVERS" | "ORIGIN_NOT_ALLOWED" | "PARAMETERS_DIFFER" | "PRIVACY_BUDGET_SPENT" | "QUEUE_FULL" | "QUOTA_REACHED" | "RATE_LIMITED" | "RATE_LIMITED_TRIES" | "REQUEST_TIMED_OUT" | "ROUTE_NOT_FOUND" | "RULING_NOT_FOUND" | "SCOPE_MISSING" | "SERVER_BUSY" | "SHUTTING_DOWN" | "SNAPSHOTS_UNAVAILABLE" | "STORE_BEHIND" | "STORE_CORRUPTED" | "STORE_FULL" | "STORE_UNAVAILABLE" | "TEXT_TOO_COMPLEX" | "TEXT_TOO_LONG" | "TLS_UNUSABLE" | "TOO_MANY_AGENTS" | "TOO_MANY_ITEMS" | "TOO_MANY_MESSAGES" | "TOO_MANY_PASSES" | "TOO_MANY_PINNED" | "TOO_MANY_STATEMENTS" | "TOO_MANY_STREAMS" | "TOO_MANY_TRANSFERS" | "UNKNOWN_FIELD" | "UNSUPPORTED_MEDIA_TYPE" | "VECTORS_UNAVAILABLE" | "VERSION_DIFFERS" | "WORKER_KILLED" | "WORKER_RESTARTING" | "WRONG_TYPE") | string;
            /** @description Details of some errors, such as the limit that was reached. */
            metadata: {
                [key: string]: string;
            };
            /** @description The invalid fields, at most ten; only if fields are invalid. */
            field_violations?: components["schemas"]["ViolationBody"][] | null;
        };
        /** @description One event. Fields that its kind does not have are null or empty. */
        EventInfo: {
            /**
             * @description Number of the event, one more than that of the previous one.
             * @example 17
             */
            sequence: number;
            /** @description Time of the event, ms since the epoch. */
            happened_at: number;
            /**
             * @description Kind of the event; see docs/events.md. New kinds may be added.
             * @example NodeForgotten
             * @enum {string}
             */
            kind: "BatchDigested" | "BatchParked" | "BatchRetried" | "NodeCreated" | "NodeCompressed" | "NodeForgotten" | "NodeCorrected" | "MemoryErased" | "LinkBroken" | "NodePinned" | "NodeUnpinned" | "EntityMade" | "EntityGone" | "FocusMoved" | "ParametersChanged" | "PassCompleted" | "StatementClosed" | "ConflictFound" | "ConflictSettled" | "FactPromoted" | "FactDemoted" | "EntitiesMerged" | "EntitiesSeparated" | "Consolidated";
            /**
             * @description The memory, the statement, the entity, or the source of the link.
             * @example n1
             */
            node_id: string | null;
            /** @description The node that the link points at; the other statement or entity of a pair. */
            target_id: string | null;
            /** @description The batch. */
            batch_id: string | null;
            /** @description The message. */
            message_id: string | null;
            /** @description The compression pass. */
            pass_number: number | null;
            /** @description Characters of the memory before. */
            length_before: number | null;
            /** @description Characters of the memory now. */
            length: number | null;
            /** @description Number of memories made from the batch. */
            node_count: number | null;
            /** @description Failed tries of the batch. */
            attempts: number | null;
            /** @description The memories in focus now, newest first. */
            focus: string[];
            /** @description The entities in focus now, newest first. */
            focus_entities: string[];
            /** @description Names of the parameters that were changed. */
            parameters: string[];
            /**
             * @description The step of the consolidation.
             * @example staged
             */
            step: string | null;
            /** @description Number of items that the step looked at. */
            looked: number | null;
            /** @description Number of items that the step changed. */
            changed: number | null;
        };
        /** @description Why a memory has its rank, or was left out. */
        ExplainedMemory: {
            /** @description Id of its node, or of its message if no node of it lives. */
            id: string;
            /** @description The combined score of the signals; in associative mode the strength of its path. */
            score: number;
            /** @description The contribution of each signal; in hybrid mode. */
            signals: components["schemas"]["SignalShare"][];
            /** @description The keywords that it matches; in associative mode. */
            matched_keywords: string[];
            /** @description The strongest path to it, from its start; in associative mode. */
            path: components["schemas"]["PathStep"][];
            /** @description Why the response does not contain it; empty if it does. */
            dropped: string;
            /** @description Whether it was shortened to its key sentences. */
            shortened: boolean;
        };
        /** @description How a recall was ranked. */
        Explanation: {
            /** @description Where an associative recall started: what the keywords name, then the focus. */
            starts: components["schemas"]["RecallStart"][];
            /** @description The words of the query that the word index searches. */
            looked_for: string;
            /** @description Quoted phrases in the query. */
            phrases: string[];
            /** @description Speakers named in the query. */
            speakers: string[];
            /** @description Times named in the query. */
            times: components["schemas"]["TimeSpoken"][];
            /** @description Signals that were not used. */
            signals_off: components["schemas"]["SignalOff"][];
            /** @description Whether the archive took part: always, never, not needed, or why it was needed: code in the query, few results, no clear top. Empty for an agent without messages. */
            archive: string;
            /** @description The memories of the response, then those left out. */
            memories: components["schemas"]["ExplainedMemory"][];
        };
        /** @description The state after waiting, also if the timeout expired. */
        Flushed: {
            /** @description Whether every batch accepted before the request is digested. */
            digested: boolean;
            /** @description Whether no compression pass is owed. */
            passes_done: boolean;
            /** @description Accepted batches not yet digested. */
            pending_batches: number;
            /** @description Compression passes owed, including the running one. */
            owed_passes: number;
            /** @description Batches parked after repeated failures. */
            parked_batches: number;
            /** @description Messages without vectors; 0 without an embedder. */
            unembedded_messages: number;
            /** @description Messages from which statements are not extracted yet; 0 if extraction is off. */
            unextracted_messages: number;
            /** @description Why extraction pauses: max_statements at the limit of the agent, or a failure in words; empty while it does not. */
            extraction_paused: string;
        };
        /** @description The agent's focus. */
        FocusInfo: {
            /** @description Memories in focus, newest first. */
            nodes: components["schemas"]["NodeInfo"][];
            /** @description Entities in focus, newest first. */
            entities: components["schemas"]["EntityInfo"][];
        };
        /** @description The coming events that a forecast assumes. */
        ForecastAssumptions: {
            /** @description Memories of the unrelated batch before each pass. */
            memories_per_batch: number;
            /** @description Characters of each of these memories. */
            characters: number;
            /** @description Passes that the agent owes for earlier batches. No batch comes before these. */
            owed_passes: number;
        };
        /** @description Columns with one entry for each memory and statement that will be forgotten, in order. */
        ForecastForgotten: {
            /** @description Number of the node. */
            id: number[];
            /** @description The pass that will forget it, counted from now: 1 is the next. */
            after: number[];
        };
        /** @description Columns with one entry for each shortening, in order. */
        ForecastShortened: {
            /** @description Number of the memory: 17 is n17. */
            id: number[];
            /** @description The pass that will shorten it, counted from now: 1 is the next. */
            after: number[];
            /** @description Characters that it will have then. */
            length: number[];
        };
        /** @description The amount of erased data; in a dry run, of data that would be erased. */
        ForgetCounts: {
            /** @description Memories. */
            nodes: number;
            /** @description Links from or to them; 0 in a dry run. */
            links: number;
            /** @description Messages erased as a whole. */
            messages: number;
            /** @description Batches erased as a whole; 0 in a dry run. */
            batches: number;
            /** @description Bytes of message text. */
            bytes: number;
            /** @description Links that remain but lose their name, since the name reveals the topic. */
            relations: number;
            /** @description Records. */
            records: number;
        };
        /** @description The proof: records of the audit log, and keyed hashes of the erased texts. */
        ForgetProof: {
            /** @description Number of the first record; 0 if nothing was erased. */
            first_record: number;
            /** @description Number of the last record. */
            last_record: number;
            /** @description Hash of the last record, in hexadecimal. */
            record_hash: string;
            /** @description HMAC-SHA256 of each erased text, in hexadecimal; the first 1000. */
            hmacs: string[];
            /** @description The total number. */
            hmac_count: number;
        };
        /** @description The erased items; in a dry run, the items that would be erased. */
        Forgotten: {
            /** @description Whether this was a dry run, which erases nothing. */
            dry_run: boolean;
            /** @description The amount of erased data. */
            counts: components["schemas"]["ForgetCounts"];
            /** @description The memories; the first 1000. */
            nodes: string[];
            /** @description The messages erased as a whole; the first 1000. */
            messages: string[];
            /** @description The messages of which only sentences are erased; the first 1000. */
            partly: string[];
            /** @description In a dry run the records, whose names may reveal the topic; the first 1000. */
            records: components["schemas"]["RecordName"][];
            /** @description Memories and messages that also mention it and remain; the first 1000. */
            also_found_in: string[];
            /** @description The total number. */
            also_found_count: number;
            /** @description The records of the audit log that prove the erasure. */
            proof: components["schemas"]["ForgetProof"];
            /** @description Whether the files no longer contain any byte of it. */
            compacted: boolean;
        };
        /** @description The found memories, best first. */
        Found: {
            /** @description The memories, best first. */
            memories: components["schemas"]["FoundMemory"][];
            /**
             * @description Accepted batches not yet digested.
             * @example 0
             */
            pending_batches: number;
            /**
             * @description Batches parked after repeated failures.
             * @example 0
             */
            parked_batches: number;
            /**
             * @description Messages, those of new statements included, that a query finds only by their words so far, since they have no vectors yet. 0 without a query or an embedding model.
             * @example 0
             */
            unembedded_messages: number;
            /** @description With the kind record: the records of the response. Memories have the other positions, in order. */
            records?: components["schemas"]["RecalledRecord"][];
        };
        /** @description A found memory. */
        FoundMemory: {
            /**
             * @description Id of its node, or of its message if no node of it lives.
             * @example n1
             */
            id: string;
            /**
             * @description episode: made from what was said; else the kind of a statement, or the caller's own.
             * @example episode
             */
            kind: string;
            /** @description The text of the memory, without the label of its speaker. */
            content: string;
            /**
             * @description living, archived (shortened or forgotten since) or pending (not digested).
             * @enum {string}
             */
            state: "living" | "archived" | "pending";
            /** @description Living nodes made from it. */
            node_ids: string[];
            /** @description The slices of messages that it was made from. */
            sources: components["schemas"]["CitedSource"][];
            /** @description When it was said, else when its message was accepted; ms since the epoch. */
            created_at: number;
            /** @description The combined score of the signals; comparable within one response only. */
            score: number;
        };
        /** @description A found statement. */
        FoundStatement: {
            /**
             * @description Id of its node.
             * @example n1
             */
            id: string;
            /**
             * @description Name of the entity that it is about.
             * @example user
             */
            subject: string;
            /**
             * @description Id of that entity.
             * @example n2
             */
            subject_id: string;
            /**
             * @description The known topic, or the caller's topic.
             * @example residence
             */
            slot: string;
            /**
             * @description The value.
             * @example Porto
             */
            object: string;
            /** @description Id of the entity that is the value; empty if none is. */
            object_id: string;
            /** @description fact, event, relation, opinion, preference, task or reflection. */
            kind: string;
            /** @description Whether it denies the value. */
            negated: boolean;
            /** @description asserted, reported or planned. */
            modality: string;
            /** @description current, contested, planned, superseded, ended, corrected, retracted or forgotten. */
            state: string;
            /**
             * @description staged (new), consolidated, or archived (forgotten).
             * @example staged
             */
            status: string;
            /** @description From when it is true, ms since the epoch. */
            since: number;
            /** @description Until when it is true, exclusive; null if open. */
            until: number | null;
            /** @description The words that give the time; empty if none do. */
            time_words: string;
            /** @description When it was said last, ms since the epoch. */
            told_at: number;
            /** @description When it was stored first, ms since the epoch. */
            known_at: number;
            /** @description Id of the statement that ended it; empty if none did. */
            superseded_by: string;
            /** @description Ids of the statements that contradict it at this time, oldest first; at most 16. */
            conflicts_with: string[];
            /** @description Confidence of the evidence, 0-1; further messages raise it. */
            confidence: number;
            /** @description The importance that was declared for it, 0-1. */
            importance: number;
            /** @description Order among statements that contradict each other. */
            priority: number;
            /** @description How much it matters now: its importance, how often and when it was said, feeling and votes. */
            weight: number;
            /** @description Whether it is pinned. */
            pinned: boolean;
            /** @description user, tool:KEY, rules@N or model:NAME. */
            author: string;
            /** @description private, team or public. */
            scope: string;
            /**
             * @description How firmly it is known: short (new), middle or long (said in several conversations).
             * @example short
             */
            tier: string;
            /** @description Further fields. */
            attributes: {
                [key: string]: string;
            };
            /** @description The sentence; empty once the statement is forgotten. */
            content: string;
            /** @description The words that support it, oldest first; at most 16. */
            quotes: components["schemas"]["Quote"][];
            /** @description Its score; comparable within one response only. */
            score: number;
            /** @description Links from a statement that was found by its words; 0 for such a one. */
            distance: number;
        };
        /** @description The found statements. */
        FoundStatements: {
            /** @description The statements, best first. */
            statements: components["schemas"]["FoundStatement"][];
            /** @description The paths to causes that the search followed, if the question asks why; at most 5. */
            paths: components["schemas"]["CausePath"][];
            /** @description The plan of the search, if the daemon has a planner. */
            plan: components["schemas"]["PlannedSearch"];
            /**
             * @description Messages, those of new statements included, that a query finds only by their words so far, since they have no vectors yet. 0 without a query or an embedding model.
             * @example 0
             */
            unembedded_messages: number;
        };
        /** @description The process is alive. */
        Health: {
            /**
             * @description Always `ok`.
             * @default ok
             */
            status: string;
            /**
             * @description The version of the daemon.
             * @default 0.1.0
             */
            version: string;
        };
        /** @description Columns with one entry for each memory and statement that was made, by id. */
        HistoryBorn: {
            /** @description Number of the node: 17 is n17. */
            id: number[];
            /** @description Completed passes when it was made. */
            after: number[];
            /** @description Characters that it had at first. */
            length: number[];
        };
        /** @description Columns with one entry for each memory and statement that was deleted, in order. */
        HistoryErased: {
            /** @description Number of the node. */
            id: number[];
            /** @description Number of the event of its deletion. */
            event: number[];
        };
        /** @description Columns with one entry for each change of the focus, in order, and the memories in focus. */
        HistoryFocus: {
            /** @description Completed passes at that time. */
            pass_number: number[];
            /** @description Where its memories begin in `id`; they end where those of the next begin. */
            offset: number[];
            /** @description Numbers of the memories in focus, newest first, one change after the other. */
            id: number[];
        };
        /** @description Columns with one entry for each memory and statement that a pass forgot, by id. */
        HistoryForgotten: {
            /** @description Number of the node. */
            id: number[];
            /** @description The pass that forgot it. */
            pass_number: number[];
        };
        /** @description Columns with one entry for each shortening, in order. */
        HistoryShortened: {
            /** @description Number of the node. */
            id: number[];
            /** @description The pass that shortened it. */
            pass_number: number[];
            /** @description Characters that it had then. */
            length: number[];
        };
        /** @description The birth of a memory. */
        LifeBirth: {
            /** @description Completed passes at that time. */
            pass_number: number;
            /** @description The batch that it was made from; null if unknown, or none. */
            batch_id: string | null;
            /** @description Time, ms since the epoch; null if unknown. */
            at: number | null;
        };
        /** @description A link from the memory that became too weak. */
        LifeBrokenLink: {
            /** @description Number of the node that the link led to. */
            target: number;
            /** @description The pass that broke it. */
            pass_number: number;
        };
        /** @description One shortening of a memory. */
        LifeChange: {
            /** @description The pass that shortened it. */
            pass_number: number;
            /** @description Its importance at that time; null if unknown. */
            importance: number | null;
            /** @description Characters before. */
            length_before: number;
            /** @description Characters after. */
            length: number;
            /** @description The language model that wrote the new text; null if unknown. */
            model: string | null;
        };
        /** @description One correction of a memory by the caller. */
        LifeCorrection: {
            /** @description Number of the event. */
            event: number;
            /** @description Time, ms since the epoch. */
            at: number;
        };
        /** @description The end of a memory. */
        LifeEnd: {
            /** @description The pass that forgot it. */
            pass_number: number;
        };
        /** @description A link from another node. */
        LinkIn: {
            /** @description Id of the node that the link comes from. */
            source: string;
            /** @description Name of the relation. */
            relation: string;
            /** @description Current strength; 1 while it is held. */
            strength: number;
        };
        /** @description A live link. */
        LinkInfo: {
            /** @description Id of the node that the link comes from. */
            source: string;
            /** @description Id of the node that the link leads to. */
            target: string;
            /** @description Name of the relation. */
            relation: string;
            /** @description Current strength; 1 while it is held. */
            strength: number;
            /** @description Whether its target is forgotten. */
            dangling: boolean;
        };
        /** @description A link to another node. */
        LinkOut: {
            /** @description Id of the node that the link leads to. */
            target: string;
            /** @description Name of the relation. */
            relation: string;
            /** @description Current strength; 1 while it is held. */
            strength: number;
        };
        /** @description A page of links. */
        LinkPage: {
            /** @description The links of this page. */
            links: components["schemas"]["LinkInfo"][];
            /** @description Empty on the last page. */
            next_page_token: string;
        };
        /** @description Columns with one entry for each live link, by source. */
        MapLinks: {
            /** @description Number of the node that the link comes from. */
            source: number[];
            /** @description Number of the node that the link leads to. If no page has this node, it is forgotten. */
            target: number[];
            /** @description Its relation, as a position in `relations`. */
            relation: number[];
            /** @description Current strength, rounded to 3 digits; 1 while it is held. */
            strength: number[];
        };
        /** @description Columns with one entry for each node, by id. */
        MapNodes: {
            /** @description Number of the node: 17 is n17. */
            id: number[];
            /** @description Its kind, as a position in `kinds`. */
            kind: number[];
            /** @description Its importance, rounded to 3 digits. */
            importance: number[];
            /** @description Characters that it has now; 0 for an entity. */
            length: number[];
            /** @description Characters that it had at first; 0 for an entity. */
            original_length: number[];
            /** @description Compression scans so far. */
            scans: number[];
            /** @description Creation time, ms since the epoch; 0 for an entity. */
            created_at: number[];
        };
        /** @description The rights of the caller's key. */
        Me: {
            /** @description Whether callers must send an API key. */
            keys_required: boolean;
            /**
             * @description The id of the key; empty without keys.
             * @example k3
             */
            key_id: string;
            /**
             * @description read, write, admin: those that the key has.
             * @example [
             *       "read"
             *     ]
             */
            scopes: string[];
            /**
             * @description Agents that the key is bound to.
             * @example [
             *       "ann"
             *     ]
             */
            agents: string[];
            /** @description Prefixes of the ids of agents that the key is bound to. */
            agent_prefixes: string[];
            /** @description Whether the key is bound to no agents, so that it reaches all of them. */
            everywhere: boolean;
            /**
             * @description The version of the daemon.
             * @example 0.1.0
             */
            version: string;
        };
        /** @description A page of proposals. */
        MergePage: {
            /** @description The proposals of this page, the most similar first. */
            proposals: components["schemas"]["MergeProposal"][];
            /** @description The latest merges and rejected proposals in effect, on the first page. */
            decided: components["schemas"]["RulingInfo"][];
            /** @description Empty on the last page. */
            next_page_token: string;
        };
        /** @description Two names that may mean one person or thing. */
        MergeProposal: {
            /**
             * @description A name.
             * @example Bob
             */
            first: string;
            /**
             * @description Id of its entity.
             * @example n5
             */
            first_id: string;
            /**
             * @description The other name.
             * @example Bob Smith
             */
            second: string;
            /**
             * @description Id of its entity.
             * @example n8
             */
            second_id: string;
            /**
             * @description spelling, contains (one name contains the other), or similar.
             * @example contains
             */
            why: string;
            /** @description Similarity of the names, 0-1; 0 if unknown. */
            similarity: number;
        };
        /** @description A stored message. */
        MessageInfo: {
            /**
             * @description Id of the message, which `forget` and deletions take.
             * @example m1
             */
            id: string;
            /** @description The caller's own id of the message, empty if none was given. */
            message_id: string;
            /** @description Id of the batch of the message. */
            batch_id: string;
            /** @description Position of the message in its batch. */
            message_index: number;
            /**
             * @description Role of the speaker.
             * @enum {string}
             */
            role: "user" | "assistant" | "system" | "tool";
            /** @description Name of the speaker; empty if none was given. */
            speaker: string;
            /** @description When it was said, if the caller gave a time; ms since the epoch. */
            timestamp: number | null;
            /** @description When it was accepted, ms since the epoch. */
            accepted_at: number;
            /** @description The conversation of the message; empty if none was given. */
            conversation_id: string;
            /** @description The message's metadata, over that of its batch. */
            metadata: {
                [key: string]: unknown;
            };
            /** @description The text of the message, with the captions of its attachments; null if it is deleted. */
            content: string | null;
            /** @description Personal data in the text, if the message was stored under the policy `tag`. */
            pii: components["schemas"]["PersonalData"][];
            /** @description Its attachments, without their content; none once the text is deleted. */
            attachments: components["schemas"]["AttachmentInfo"][];
        };
        /** @description A page of messages. */
        MessagePage: {
            /** @description The messages of this page, in the order of arrival. */
            messages: components["schemas"]["MessageInfo"][];
            /** @description Empty on the last page. A page may have few messages, or none, before the last. */
            next_page_token: string;
        };
        /** @description The current language model and embedding model. */
        ModelInfo: {
            /**
             * @description builtin, ollama or openai.
             * @example builtin
             */
            kind: string;
            /**
             * @description Name of the model.
             * @example builtin
             */
            name: string;
            /** @description Whether it answers. */
            available: boolean;
            /** @description Why it does not answer; else empty. */
            detail: string;
            /** @description The calls of each task: segment, process, relate, extract, plan. */
            tasks: {
                [key: string]: components["schemas"]["TaskTally"];
            };
            /** @description The embedding model, for recall by meaning. */
            embedder: components["schemas"]["EmbedderInfo"];
        };
        /** @description The result for one of many memories. */
        NodeDeletion: {
            /**
             * @description The id from the request.
             * @example n1
             */
            node_id: string;
            /** @description Number of links from or to it. */
            links_removed: number;
            /** @description Bytes of source text removed from the archive. */
            bytes_withdrawn: number;
            /** @description Ids of other memories that cite its source text, which stays for them; at most 5. Delete these too to remove the text. */
            cited_by: string[];
            /** @description Whether it existed and was deleted. */
            deleted: boolean;
            /** @description Why it was not deleted: NODE_NOT_FOUND, BATCH_NOT_DIGESTED or INVALID_VALUE (a concept); else empty. */
            reason: string;
        };
        /** @description A memory with its first content and its live links. */
        NodeDetail: {
            /**
             * @description Id of the node.
             * @example n1
             */
            id: string;
            /**
             * @description episode: made from what was said; entity: a name, which has no content; concept: keywords that a group of statements and entities share; else a statement's kind, or the caller's own.
             * @example episode
             */
            kind: string;
            /** @description The speaker, as shown before the content; not part of the content. */
            label: string;
            /** @description The current text of the memory; empty for an entity. */
            content: string;
            /** @description Summary of 10-20 characters, or up to 8 words; the name of an entity. */
            phrase: string;
            /** @description Words by which an associative recall finds it. */
            keywords: string[];
            /** @description Creation time, ms since the epoch; null for an entity. */
            created_at: number | null;
            /** @description Compression scans so far. */
            scan_count: number;
            /** @description Length of the original content, in characters. */
            original_length: number;
            /** @description Support from other memories: at 1 it keeps its length, at 0 it is forgotten. */
            importance: number;
            /** @description Whether it is in focus. */
            in_focus: boolean;
            /**
             * @description Whether the memory is pinned: none, by_hand, or by_request (the user asked to remember it).
             * @enum {string}
             */
            pinned: "none" | "by_hand" | "by_request";
            /** @description The entities that it is linked with, strongest first. */
            entities: components["schemas"]["EntityLink"][];
            /** @description The slices of messages that it was made from. */
            sources: components["schemas"]["SourceInfo"][];
            /** @description The latest rewrites. */
            rewrites: components["schemas"]["RewriteInfo"][];
            /** @description The content when the memory was made; null if it was deleted or is not retained. */
            first_content: string | null;
            /** @description Links from other nodes. */
            links_in: components["schemas"]["LinkIn"][];
            /** @description Links to living nodes. */
            links_out: components["schemas"]["LinkOut"][];
            /** @description Links to forgotten memories. */
            dangling: components["schemas"]["LinkOut"][];
        };
        /** @description The life of a memory or statement. */
        NodeHistory: {
            /**
             * @description Number of the node: 17 is n17.
             * @example 17
             */
            id: number;
            /**
             * @description living, forgotten, or erased: deleted, and nothing else is known of it.
             * @example living
             */
            state: string;
            /** @description Its birth; null for an erased one. */
            born: components["schemas"]["LifeBirth"] | null;
            /** @description Its shortenings, in order. */
            changes: components["schemas"]["LifeChange"][];
            /** @description Its end; null while it lives, and for an erased one. */
            forgotten: components["schemas"]["LifeEnd"] | null;
            /** @description Its corrections, in order. */
            corrections: components["schemas"]["LifeCorrection"][];
            /** @description Its links that became too weak, in order. */
            links_broken: components["schemas"]["LifeBrokenLink"][];
            /** @description Whether the events since its birth are kept. Otherwise changes may be missing. */
            complete: boolean;
        };
        /** @description The importance of a node after a change. */
        NodeImportance: {
            /**
             * @description Id of the node.
             * @example n1
             */
            node_id: string;
            /** @description Number of links whose strength was set. */
            links_changed: number;
            /** @description Support from other memories and entities now. */
            importance: number;
        };
        /** @description The current state of a memory, or of an entity. */
        NodeInfo: {
            /**
             * @description Id of the node.
             * @example n1
             */
            id: string;
            /**
             * @description episode: made from what was said; entity: a name, which has no content; concept: keywords that a group of statements and entities share; else a statement's kind, or the caller's own.
             * @example episode
             */
            kind: string;
            /** @description The speaker, as shown before the content; not part of the content. */
            label: string;
            /** @description The current text of the memory; empty for an entity. */
            content: string;
            /** @description Summary of 10-20 characters, or up to 8 words; the name of an entity. */
            phrase: string;
            /** @description Words by which an associative recall finds it. */
            keywords: string[];
            /** @description Creation time, ms since the epoch; null for an entity. */
            created_at: number | null;
            /** @description Compression scans so far. */
            scan_count: number;
            /** @description Length of the original content, in characters. */
            original_length: number;
            /** @description Support from other memories: at 1 it keeps its length, at 0 it is forgotten. */
            importance: number;
            /** @description Whether it is in focus. */
            in_focus: boolean;
            /**
             * @description Whether the memory is pinned: none, by_hand, or by_request (the user asked to remember it).
             * @enum {string}
             */
            pinned: "none" | "by_hand" | "by_request";
            /** @description The entities that it is linked with, strongest first. */
            entities: components["schemas"]["EntityLink"][];
            /** @description The slices of messages that it was made from. */
            sources: components["schemas"]["SourceInfo"][];
            /** @description The latest rewrites. */
            rewrites: components["schemas"]["RewriteInfo"][];
        };
        /** @description A page of nodes. */
        NodePage: {
            /** @description The nodes of this page, in the order of their ids, or that of `ids`. */
            nodes: components["schemas"]["NodeInfo"][];
            /** @description Empty on the last page. */
            next_page_token: string;
            /** @description With `details`: the nodes with their first content and links; `nodes` is empty then. */
            details?: components["schemas"]["NodeDetail"][];
        };
        /** @description A node of a path, and the link that leads to it. */
        PathStep: {
            /** @description Id of the node. */
            id: string;
            /** @description Name of the entity; empty for a memory. */
            name: string;
            /** @description Name of the link to it; empty for the start of the path. */
            relation: string;
        };
        /** @description Personal data in a message that was stored under the policy `tag`: a slice in UTF-8 bytes. */
        PersonalData: {
            /**
             * @description email, phone, national_id, card, iban, ip or secret.
             * @example email
             */
            kind: string;
            /** @description Offset of its first byte in the message's UTF-8. */
            offset: number;
            /** @description Its length in bytes. */
            length: number;
        };
        /** @description The plan of the language model for a search. */
        PlannedSearch: {
            /** @description off: no plan was requested; used; failed: the search ran without a plan. */
            outcome: string;
            /** @description Why it failed; empty otherwise. */
            why: string;
            /** @description The kinds that it selects; empty for all. */
            kinds: string[];
            /** @description The topics that it adds to those of the question. */
            topics: string[];
            /** @description From when on messages count, ms since the epoch; null for no limit. */
            since: number | null;
            /** @description Until when messages count, exclusive; null for no limit. */
            until: number | null;
            /** @description Whether it follows links. */
            expand: boolean;
        };
        /** @description The knowledge about an entity. */
        Profile: {
            /** @description Id of the entity; empty if nothing is known about it. */
            entity_id: string;
            /**
             * @description Its name.
             * @example user
             */
            name: string;
            /** @description The names of the entities that are merged with it, its own included. */
            names: string[];
            /** @description The topics, lasting ones first. */
            slots: components["schemas"]["ProfileSlot"][];
            /**
             * @description The profile for a language model, a line for each statement, within the token budget.
             * @example residence: Porto (since 2026-05-01) [n1]
             */
            text: string;
            /** @description Whether statements were left out: of the text for the token budget, or of a topic that has more than 256 of them. */
            is_cut: boolean;
        };
        /** @description A topic, with what is true of it. */
        ProfileSlot: {
            /**
             * @description The topic.
             * @example residence
             */
            slot: string;
            /** @description How many values it has at a time: one, few or many. */
            cardinality: string;
            /** @description Whether statements on it are never forgotten while they are true. */
            lasting: boolean;
            /** @description The true statements, the best first; then open plans. */
            statements: components["schemas"]["StatementInfo"][];
        };
        /** @description Words that support a statement. */
        Quote: {
            /** @description The words; empty once they have expired. */
            text: string;
            /** @description The caller's own id of the message; empty if none was given. */
            message_id: string;
            /** @description Id of the batch of the message. */
            batch_id: string;
            /** @description Position of the message in its batch. */
            message_index: number;
            /** @description Offset of the words in the message's UTF-8. */
            offset: number;
            /** @description Length of the words in bytes. */
            length: number;
            /** @description Role of the speaker; tool for the words of a statement itself. */
            role: string;
            /** @description Time of the message, ms since the epoch. */
            said_at: number;
        };
        /** @description Whether the daemon can do its work. */
        Readiness: {
            /**
             * @description ready, degraded or unavailable.
             * @example ready
             * @enum {string}
             */
            status: "ready" | "degraded" | "unavailable";
            /** @description Why it is not ready; else empty. */
            reasons: string[];
        };
        /** @description A node at which an associative recall started. */
        RecallStart: {
            /** @description Id of the node. */
            id: string;
            /** @description Name of the entity; empty for a memory. */
            name: string;
            /** @description 0: a keyword names it; from 1: its position in the focus. */
            position: number;
            /** @description The keyword that names it; empty for the focus. */
            keyword: string;
        };
        /** @description The result of a recall. */
        Recalled: {
            /**
             * @description Memories for a language model to read; empty if there are none.
             * @example [Memory] Ann: I moved to Lisbon in May.
             */
            text: string;
            /**
             * @description Accepted batches not yet digested.
             * @example 0
             */
            pending_batches: number;
            /**
             * @description Batches parked after repeated failures.
             * @example 0
             */
            parked_batches: number;
            /**
             * @description Messages, those of new statements included, that a query finds only by their words so far, since they have no vectors yet. 0 without a query or an embedding model.
             * @example 0
             */
            unembedded_messages: number;
            /**
             * @description Requested `relations` that no link and no entity has; they were ignored.
             * @example []
             */
            relations_unknown: string[];
            /** @description With `citations`: the memories of the text. */
            memories?: components["schemas"]["RecalledMemory"][];
            /** @description With `explain`: how the memories were ranked. */
            explanation?: components["schemas"]["Explanation"] | null;
            /** @description With the kind record: the records of the response. Memories have the other positions, in order. */
            records?: components["schemas"]["RecalledRecord"][];
        };
        /** @description A memory of the response, in the order of the text. */
        RecalledMemory: {
            /**
             * @description Id of its node, or of its message if no node of it lives.
             * @example n1
             */
            id: string;
            /**
             * @description episode: made from what was said; else the kind of a statement, or the caller's own.
             * @example episode
             */
            kind: string;
            /** @description The text of the memory, without the label of its speaker. */
            content: string;
            /**
             * @description living, archived (shortened or forgotten since) or pending (not digested).
             * @enum {string}
             */
            state: "living" | "archived" | "pending";
            /** @description Living nodes made from it. */
            node_ids: string[];
            /** @description The slices of messages that it was made from. */
            sources: components["schemas"]["CitedSource"][];
            /** @description When it was said, else when its message was accepted; ms since the epoch. */
            created_at: number;
        };
        /** @description A record of the response, in the order of the text. */
        RecalledRecord: {
            /** @description Its place, from the outermost label on. */
            namespace: string[];
            /**
             * @description Its name in the namespace.
             * @example theme
             */
            key: string;
            /** @description Version of its value. */
            version: number;
            /** @description The passage of its texts that matches the query best. */
            text: string;
            /** @description How relevant it is among the records, above 0; 1 for the best one. */
            score: number;
            /** @description Its position among the memories and records of the response, from 0. */
            position: number;
            /** @description When the record was first put, ms since the epoch. */
            created_at: number;
            /** @description When it was last put, ms since the epoch. */
            updated_at: number;
        };
        /** @description A record. */
        RecordInfo: {
            /** @description Its place, from the outermost label on. */
            namespace: string[];
            /**
             * @description Its name in the namespace.
             * @example theme
             */
            key: string;
            /** @description The value, as it was put. */
            value: {
                [key: string]: unknown;
            };
            /** @description Version of the value. It grows with every put and is never used again. */
            version: number;
            /** @description When the record was first put, ms since the epoch. */
            created_at: number;
            /** @description When it was last put, ms since the epoch. */
            updated_at: number;
            /** @description When it expires, ms since the epoch; null for never. */
            expires_at: number | null;
            /** @description search with a query: how relevant it is, above 0; 1 for the best record. Else null. */
            score: number | null;
        };
        /** @description A record by its place and name. */
        RecordName: {
            /** @description Its place, from the outermost label on. */
            namespace: string[];
            /** @description Its name in the namespace. */
            key: string;
        };
        /** @description A namespace that has records. */
        RecordNamespace: {
            /** @description Its labels, from the outermost on. */
            labels: string[];
        };
        /** @description The result of one operation; fields of other operations are null or empty. */
        RecordResult: {
            /** @description put: the version of the new value. */
            version: number | null;
            /** @description delete: how many records were deleted. */
            deleted: number | null;
            /** @description get: the record; null if there is none. */
            record: components["schemas"]["RecordInfo"] | null;
            /** @description search: the records, in order. */
            records: components["schemas"]["RecordInfo"][];
            /** @description namespaces: those that fit, in order. */
            namespaces: components["schemas"]["RecordNamespace"][];
        };
        /** @description The result of each operation. */
        RecordResults: {
            /** @description One result for each operation, in the order of the request. */
            results: components["schemas"]["RecordResult"][];
        };
        /** @description A part of an attachment. */
        RegionInfo: {
            /** @description Its page, from 1; null if none was given. */
            page: number | null;
            /** @description x, y, width and height as shares of the picture or page; empty if none was given. */
            box: number[];
            /** @description Its begin in a recording, in ms; null if none was given. */
            begin_ms: number | null;
            /** @description Its end in a recording, in ms; null if none was given. */
            end_ms: number | null;
            /** @description The words that describe it. */
            caption: string;
        };
        /** @description The batch is stored durably. */
        Remembered: {
            /**
             * @description Id of the batch, for its status.
             * @example b1
             */
            batch_id: string;
            /**
             * @description Accepted batches not yet digested.
             * @example 1
             */
            pending_batches: number;
            /**
             * @description Personal data found in it, by kind, tagged or redacted by the agent's `pii` policy.
             * @example {}
             */
            pii: {
                [key: string]: number;
            };
            /**
             * @description Lines left out because a recall had just returned them.
             * @example 0
             */
            dropped_recalled: number;
            /**
             * @description Messages left out because they repeat an earlier one.
             * @example 0
             */
            collapsed: number;
        };
        /** @description The restored agent. */
        Restored: {
            /**
             * @description The agent's id.
             * @example ann
             */
            agent_id: string;
            /** @description Whether it replaced an existing agent. */
            replaced: boolean;
            /** @description Number of living memories, entities, links and stored messages. */
            counts: components["schemas"]["Counts"];
            /** @description Accepted batches not yet digested. */
            pending_batches: number;
            /** @description Batches parked after repeated failures. */
            parked_batches: number;
            /** @description Compression passes owed, including the running one. */
            owed_passes: number;
        };
        /** @description One rewrite, which shortened a memory. */
        RewriteInfo: {
            /** @description The compression pass that made it. */
            pass_number: number;
            /** @description Importance of the memory at that time. */
            importance: number;
            /** @description Characters before. */
            length_before: number;
            /** @description Characters after. */
            length_after: number;
            /** @description The language model that wrote the new text. */
            model: string;
        };
        /** @description A ruling in effect. */
        RulingInfo: {
            /**
             * @description Id of the ruling.
             * @example r1
             */
            id: string;
            /** @description merge, settle, correct, retract, pin, unpin, vote, distinct (a rejected proposal) or cause (an inferred link). */
            kind: string;
            /**
             * @description Id of the statement or entity that it is about.
             * @example n1
             */
            target: string;
            /** @description Id of the other statement or entity; empty if there is none. */
            other: string;
            /** @description 1 or -1 for a vote; the confidence of a cause. */
            value: number;
            /** @description The name of the key that stored it, or the rule, such as causes@1. */
            author: string;
            /** @description Why; without a reason, the words that it rests on. */
            reason: string;
            /** @description When it was stored, ms since the epoch. */
            known_at: number;
        };
        /** @description A page of rulings. */
        RulingPage: {
            /** @description The rulings of this page, in order of arrival. */
            rulings: components["schemas"]["RulingInfo"][];
            /** @description Empty on the last page. */
            next_page_token: string;
        };
        /** @description The state of the compression scheduler. */
        SchedulerInfo: {
            /** @description Concurrent slices. */
            concurrency: number;
            /** @description Longest slice. */
            time_slice_ms: number;
            /** @description Agents that compress now. */
            running: string[];
            /** @description Agents that wait for a turn, next first; at most 100. */
            waiting: string[];
            /** @description Agents that wait for a turn. */
            waiting_count: number;
            /** @description Slices since the start. */
            slices: number;
            /** @description Slices that ended with an internal error. */
            failed_slices: number;
            /** @description Agents that are open. */
            open_agents: number;
            /** @description Most agents open at once. */
            max_open_agents: number;
        };
        /** @description A signal that was not used. */
        SignalOff: {
            /** @description Name of the signal. */
            signal: string;
            /** @description Why it was not used. */
            why: string;
        };
        /** @description The contribution of one signal to a memory's score. */
        SignalShare: {
            /** @description Name of the signal. */
            signal: string;
            /** @description Contribution of the signal to the score of the memory. */
            score: number;
        };
        /** @description The source of a memory: a slice of a message, in UTF-8 bytes. */
        SourceInfo: {
            /** @description The caller's own id of the message, empty if none was given. */
            message_id: string;
            /** @description Id of the batch of the message. */
            batch_id: string;
            /** @description Position of the message in its batch. */
            message_index: number;
            /** @description Offset of the slice in the message's UTF-8. */
            offset: number;
            /** @description Length of the slice in bytes. */
            length: number;
            /**
             * @description Role of the speaker.
             * @enum {string}
             */
            role: "user" | "assistant" | "system" | "tool";
            /** @description Name of the speaker; empty if none was given. */
            speaker: string;
            /** @description When it was said, if the caller gave a time; ms since the epoch. */
            timestamp: number | null;
            /** @description The conversation of the message; empty if none was given. */
            conversation_id: string;
            /** @description The message's metadata, over that of its batch. */
            metadata: {
                [key: string]: unknown;
            };
            /** @description Personal data in the slice, if the message was stored under the policy `tag`. */
            pii: components["schemas"]["PersonalData"][];
            /** @description The attachment whose caption the slice quotes; null for the message's own words. */
            attachment: components["schemas"]["CitedAttachment"] | null;
        };
        /** @description All versions of the topic of a statement. */
        StatementHistory: {
            /** @description The versions, by the time from which they are true. */
            statements: components["schemas"]["StatementInfo"][];
        };
        /** @description A statement at a time. */
        StatementInfo: {
            /**
             * @description Id of its node.
             * @example n1
             */
            id: string;
            /**
             * @description Name of the entity that it is about.
             * @example user
             */
            subject: string;
            /**
             * @description Id of that entity.
             * @example n2
             */
            subject_id: string;
            /**
             * @description The known topic, or the caller's topic.
             * @example residence
             */
            slot: string;
            /**
             * @description The value.
             * @example Porto
             */
            object: string;
            /** @description Id of the entity that is the value; empty if none is. */
            object_id: string;
            /** @description fact, event, relation, opinion, preference, task or reflection. */
            kind: string;
            /** @description Whether it denies the value. */
            negated: boolean;
            /** @description asserted, reported or planned. */
            modality: string;
            /** @description current, contested, planned, superseded, ended, corrected, retracted or forgotten. */
            state: string;
            /**
             * @description staged (new), consolidated, or archived (forgotten).
             * @example staged
             */
            status: string;
            /** @description From when it is true, ms since the epoch. */
            since: number;
            /** @description Until when it is true, exclusive; null if open. */
            until: number | null;
            /** @description The words that give the time; empty if none do. */
            time_words: string;
            /** @description When it was said last, ms since the epoch. */
            told_at: number;
            /** @description When it was stored first, ms since the epoch. */
            known_at: number;
            /** @description Id of the statement that ended it; empty if none did. */
            superseded_by: string;
            /** @description Ids of the statements that contradict it at this time, oldest first; at most 16. */
            conflicts_with: string[];
            /** @description Confidence of the evidence, 0-1; further messages raise it. */
            confidence: number;
            /** @description The importance that was declared for it, 0-1. */
            importance: number;
            /** @description Order among statements that contradict each other. */
            priority: number;
            /** @description How much it matters now: its importance, how often and when it was said, feeling and votes. */
            weight: number;
            /** @description Whether it is pinned. */
            pinned: boolean;
            /** @description user, tool:KEY, rules@N or model:NAME. */
            author: string;
            /** @description private, team or public. */
            scope: string;
            /**
             * @description How firmly it is known: short (new), middle or long (said in several conversations).
             * @example short
             */
            tier: string;
            /** @description Further fields. */
            attributes: {
                [key: string]: string;
            };
            /** @description The sentence; empty once the statement is forgotten. */
            content: string;
            /** @description The words that support it, oldest first; at most 16. */
            quotes: components["schemas"]["Quote"][];
        };
        /** @description A page of statements. */
        StatementPage: {
            /** @description The statements of this page: those that are or were true, then planned ones, each by id. */
            statements: components["schemas"]["StatementInfo"][];
            /** @description Empty on the last page. */
            next_page_token: string;
        };
        /** @description A stored ruling. */
        StoredRuling: {
            /**
             * @description Id of the ruling, to undo it.
             * @example r1
             */
            ruling_id: string;
        };
        /** @description The calls of one task. */
        TaskTally: {
            /** @description Number of calls. */
            calls: number;
            /** @description Usable replies. */
            parsed: number;
            /** @description Unusable replies. */
            bad_replies: number;
            /** @description Calls that no server answered. */
            unavailable: number;
            /** @description Share of usable replies. */
            parse_rate: number | null;
        };
        /** @description Whether a text was erased. */
        TextVerdict: {
            /** @description Whether a record proves that the text was erased. */
            erased: boolean;
            /** @description Number of the record that proves it; 0 for none. */
            record: number;
        };
        /** @description A time named in the query. */
        TimeSpoken: {
            /** @description The words in the query that name it. */
            words: string;
            /** @description Its begin, ms since the epoch. */
            begin: number;
            /** @description Its end, which does not belong to it; ms since the epoch. */
            end: number;
        };
        /** @description Declarations of tools, to be passed to a language model. */
        ToolList: {
            /**
             * @description The declarations, in the requested form.
             * @example [
             *       {
             *         "name": "recall"
             *       }
             *     ]
             */
            tools: {
                [key: string]: unknown;
            }[];
        };
        /** @description Instructions on the tools. */
        ToolPrompt: {
            /** @description The instructions, with examples, for the system prompt of a model. */
            text: string;
        };
        /** @description The outcome of a call. */
        ToolResult: {
            /**
             * @description The response of the operation of this name.
             * @example {
             *       "text": "I moved to Lisbon."
             *     }
             */
            result: {
                [key: string]: unknown;
            };
            /**
             * @description Changes that were made to read the arguments.
             * @example [
             *       "q: read as query"
             *     ]
             */
            noticed: string[];
        };
        /** @description A field that was refused. */
        ViolationBody: {
            /** @description Path of the field, such as messages[0].content. */
            field: string;
            /** @description The fault of the field, and the allowed values. */
            description: string;
        };
        /** @description A small file that belongs to a message. */
        Attachment: {
            /**
             * @description Its media type, without parameters.
             * @example image/png
             */
            mime: string;
            /**
             * Format: byte
             * @description Its content, at most 1 MiB; over REST in base64.
             */
            bytes: string;
            /** @description SHA-256 of the content in hexadecimal; checked if it is given. */
            sha256?: string | null;
            /**
             * @description The words that describe it; queries find them.
             * @default
             */
            caption?: string;
            /** @description Parts of it that can be found and cited, at most 64. */
            regions?: components["schemas"]["Region"][];
        };
        /** @description Operations on records. */
        BatchRecordsRequest: {
            /** @description The operations, in order; 1-1000. */
            ops: components["schemas"]["RecordOperation"][];
        };
        /** @description A call by a language model. */
        CallToolRequest: {
            /**
             * @description The arguments as the model sent them: an object, or its JSON as text. At most 65536 characters, 1000 values and 8 levels.
             * @example {
             *       "query": "Where does Ann live?"
             *     }
             */
            arguments?: {
                [key: string]: unknown;
            } | string;
        };
        /** @description The name and the arguments of a call. */
        CalledFunction: {
            /**
             * @description Name of the function.
             * @example get_weather
             */
            name: string;
            /**
             * @description The arguments, as JSON.
             * @example {"city": "Lisbon"}
             */
            arguments?: string | {
                [key: string]: unknown;
            } | null;
        } & {
            [key: string]: unknown;
        };
        /** @description The name and the input of a call of a custom tool. */
        CalledTool: {
            /**
             * @description Name of the tool.
             * @example run_code
             */
            name: string;
            /**
             * @description The input.
             * @example print(1)
             */
            input?: string | {
                [key: string]: unknown;
            } | null;
        } & {
            [key: string]: unknown;
        };
        /** @description How many passes to add. */
        CompressRequest: {
            /**
             * @description Compression passes to add to those owed; at least 1.
             * @default 1
             */
            passes?: number;
        };
        /** @description Whether to change something. */
        ConsolidateRequest: {
            /**
             * @description Change nothing, and return what a run would change.
             * @default false
             */
            dry_run?: boolean;
        };
        /** @description A part of the content of a message. */
        ContentPart: {
            /**
             * @description `text`; other parts are stored as their type, such as `[image]`.
             * @default text
             */
            type?: string;
            /** @description The text of a part of the type `text`. */
            text?: string | null;
        } & {
            [key: string]: unknown;
        };
        /** @description The right fields of a statement. */
        CorrectStatementRequest: {
            /**
             * @description The right value.
             * @example Porto
             */
            object?: string | null;
            /** @description The right time from which it is true. */
            since?: number | string | null;
            /** @description The right time until which it is true. */
            until?: number | string | null;
            /** @description Whether the statement denies the value. */
            negated?: boolean | null;
            /**
             * @description Id of a statement on the same topic that this one ends; empty for none. Default: as before.
             * @example n12
             */
            replaces?: string | null;
            /**
             * @description Why, for the audit of the agent's knowledge.
             * @default
             */
            reason?: string;
        };
        /** @description A link between two living nodes. */
        CreateLinkRequest: {
            /**
             * @description The node that the link comes from.
             * @example n1
             */
            source: string;
            /**
             * @description The node that it leads to.
             * @example n2
             */
            target: string;
            /**
             * @description causes, caused_by, supports, contradicts, references, based_on, related, or another name. `limits.max_relation_chars` sets the limit.
             * @example causes
             */
            relation: string;
            /**
             * @description Its strength now, above 0 to 1.
             * @default 0.6
             */
            strength?: number;
        };
        /** @description The memory to create. */
        CreateNodeRequest: {
            /**
             * @description The text of the memory, which is not split. `limits.max_message_chars` sets the limit.
             * @example Ann is allergic to nuts.
             */
            content: string;
            /**
             * @description Its kind: a word of your own, by which lists and queries can be filtered.
             * @default episode
             */
            kind?: string;
            /**
             * @description Role of the speaker.
             * @default user
             * @enum {string}
             */
            role?: "user" | "assistant" | "system";
            /**
             * @description Name of the speaker, where the role does not say enough. `limits.max_name_chars` sets the limit.
             * @example Ann
             */
            speaker?: string | null;
            /** @description When it was said: ms since the epoch, or ISO 8601 with a time zone. */
            timestamp?: number | string | null;
            /** @description The caller's own id, returned with sources. `limits.max_name_chars` sets the limit. */
            message_id?: string | null;
            /** @description The conversation that it belongs to. `limits.max_name_chars` sets the limit. */
            conversation_id?: string | null;
            /** @description Its keywords. Default: those of the content. `limits.max_keyword_chars` and `limits.max_keywords` set the limits. */
            keywords?: string[];
            /** @description Flat fields stored with it; at most 4 KiB as JSON. `limits.max_metadata_bytes` sets the limit. */
            metadata?: {
                [key: string]: unknown;
            } | null;
            /** @description Its links, instead of those with the memories in focus, which it then does not join; at most 64. */
            links?: components["schemas"]["NewLink"][];
            /** @description Its vector of the current embedding model. Default: computed in the background. */
            vector?: number[];
            /** @description Repeating a request with the same key and body has no further effect. `limits.max_name_chars` sets the limit. */
            idempotency_key?: string | null;
        };
        /** @description A statement to store. */
        CreateStatementRequest: {
            /**
             * @description The person or thing that it is about: a name, or I, user, 我 for the user.
             * @example user
             */
            subject: string;
            /**
             * @description The property of the subject, in one to three words: residence, job, allergy, 住址.
             * @example residence
             */
            topic: string;
            /**
             * @description The value; at most 500 characters.
             * @default
             * @example Porto
             */
            object?: string;
            /**
             * @description fact, event, relation, opinion, preference, task or reflection.
             * @default fact
             * @enum {string}
             */
            kind?: "fact" | "event" | "relation" | "opinion" | "preference" | "task" | "reflection";
            /**
             * @description The sentence to store. Default: subject, topic and object. It is searched and cited. `limits.max_message_chars` sets the limit.
             * @default
             * @example I moved to Porto in May.
             */
            content?: string;
            /**
             * @description At most 16 further fields; names up to 64 characters, values up to 500.
             * @example {
             *       "since": "May"
             *     }
             */
            attributes?: {
                [key: string]: string;
            };
            /**
             * @description Strength of its links, 0-1.
             * @default 0.5
             */
            importance?: number;
            /** @description Whether the statement denies the value. Default: whether content says that it is so no longer. Required if content denies something else, such as not. */
            negated?: boolean | null;
            /** @description asserted; reported (passed on by another person); planned. Default: planned if content says what will be, else asserted. */
            modality?: ("asserted" | "reported" | "planned") | null;
            /** @description From when it is true; default: the time that content states, else now. */
            since?: number | string | null;
            /** @description Until when it is true; default: open. */
            until?: number | string | null;
            /** @description When it was said; default: now. */
            timestamp?: number | string | null;
            /**
             * @description Id of a statement on the same topic that this one ends.
             * @default
             * @example n12
             */
            replaces?: string;
            /**
             * @description private, team or public; a filter.
             * @default private
             * @enum {string}
             */
            scope?: "private" | "team" | "public";
            /** @description How pleasant it is to the subject, -1 to 1. */
            valence?: number | null;
            /** @description How much it moves the subject, 0-1. */
            arousal?: number | null;
            /** @description Flat fields stored with its message; at most 4 KiB as JSON. `limits.max_metadata_bytes` sets the limit. */
            metadata?: {
                [key: string]: unknown;
            } | null;
            /** @description Its links with living nodes, in addition to those with its subject and value; at most 64. */
            links?: components["schemas"]["NewLink"][];
            /** @description The vector of its content, of the current embedding model. Default: computed in the background. */
            vector?: number[];
            /** @description Repeating a request with the same key and body has no further effect. `limits.max_name_chars` sets the limit. */
            idempotency_key?: string | null;
        };
        /** @description Which memories to delete. */
        DeleteNodesRequest: {
            /**
             * @description Ids of nodes, or of messages as search returns them; 1-1000.
             * @example [
             *       "n1",
             *       "n2"
             *     ]
             */
            node_ids: string[];
        };
        /** @description How long to wait, and for what. */
        FlushRequest: {
            /**
             * @description Longest wait, 0-600000. `limits.max_timeout_ms` sets the limit.
             * @default 30000
             */
            timeout_ms?: number;
            /**
             * @description Also wait until no compression pass is owed.
             * @default false
             */
            passes?: boolean;
            /**
             * @description Also wait until every message has its vectors.
             * @default false
             */
            vectors?: boolean;
            /**
             * @description Also wait until statements are extracted from every message, if extraction is on.
             * @default false
             */
            extraction?: boolean;
        };
        /** @description How far to look ahead, and for which nodes. */
        ForecastRequest: {
            /** @description Compression passes from now on, 1-1000; default: 200. */
            passes?: number | null;
            /** @description Memories of the unrelated batch before each pass, 0-1000; 0 for no batches; default: the mean of the latest batches, at most 50. */
            memories_per_batch?: number | null;
            /**
             * @description Only what happens to these memories and statements, at most 1000; default: to all.
             * @example [
             *       "n1"
             *     ]
             */
            nodes?: string[];
        };
        /** @description What to forget permanently. */
        ForgetRequest: {
            /**
             * @description These memories.
             * @example [
             *       "n1"
             *     ]
             */
            nodes?: string[];
            /**
             * @description These messages, by ids such as m1, from search results without a living memory or a dry run.
             * @example [
             *       "m1"
             *     ]
             */
            messages?: string[];
            /**
             * @description Every sentence, memory and record that names this. `limits.max_keyword_chars` sets the limit.
             * @example Project Heron
             */
            topic?: string | null;
            /** @description Messages of this period, and records that were created or updated in it. */
            time_range?: components["schemas"]["TimeRange"] | null;
            /** @description Messages of these conversations. `limits.max_name_chars` sets the limit. */
            conversations?: string[];
            /** @description Messages of these speakers. `limits.max_name_chars` sets the limit. */
            speakers?: string[];
            /** @description These records. */
            records?: components["schemas"]["RecordSelection"][];
            /**
             * @description Only report what would be forgotten.
             * @default false
             */
            dry_run?: boolean;
        };
        /** @description A judgement about a statement. */
        GiveFeedbackRequest: {
            /**
             * @description Id of the statement.
             * @example n1
             */
            node_id: string;
            /**
             * @description pin (never forgotten), unpin, upvote or downvote.
             * @enum {string}
             */
            action: "pin" | "unpin" | "upvote" | "downvote";
            /**
             * @description Why, for the audit of the agent's knowledge.
             * @default
             */
            reason?: string;
        };
        /** @description Two entities that are one. */
        MergeEntitiesRequest: {
            /**
             * @description A name, or the id of an entity.
             * @example Bob
             */
            entity: string;
            /**
             * @description Another name, or its id.
             * @example Robert
             */
            other: string;
            /**
             * @description Why, for the audit of the agent's knowledge.
             * @default
             */
            reason?: string;
        };
        /** @description One message of a conversation, also as a client of OpenAI's chat completions holds it. */
        Message: {
            /**
             * @description Role of the speaker. `developer` means `system`; `function` means `tool`.
             * @enum {string}
             */
            role: "user" | "assistant" | "system" | "developer" | "tool" | "function";
            /**
             * @description The text of the message, or its parts. Not required if there are calls of tools. `limits.max_message_chars` sets the limit.
             * @example I moved to Lisbon in May.
             */
            content?: string | components["schemas"]["ContentPart"][] | null;
            /** @description When it was said: ms since the epoch, or ISO 8601 with a time zone. */
            timestamp?: number | string | null;
            /** @description The caller's own id, returned with sources. `limits.max_name_chars` sets the limit. */
            id?: string | null;
            /**
             * @description Name of the speaker, where the role does not say enough. `limits.max_name_chars` sets the limit.
             * @example Ann
             */
            speaker?: string | null;
            /**
             * @description Flat fields stored with the message, over those of its batch; at most 4 KiB as JSON. `limits.max_metadata_bytes` sets the limit.
             * @example {
             *       "topic": "travel"
             *     }
             */
            metadata?: {
                [key: string]: unknown;
            } | null;
            /** @description Small files that belong to the message, at most 16. Queries find them by their captions. */
            attachments?: components["schemas"]["Attachment"][];
            /**
             * @description Same as `speaker`, as OpenAI names it. `limits.max_name_chars` sets the limit.
             * @example Ann
             */
            name?: string | null;
            /** @description Calls of tools, at most 128, stored as `name(arguments)` after the content. */
            tool_calls?: components["schemas"]["ToolCall"][] | null;
            /** @description Id of the call that a tool answers; stored as metadata. */
            tool_call_id?: string | null;
            /** @description A call, as OpenAI had it before `tool_calls`. */
            function_call?: components["schemas"]["CalledFunction"] | null;
            /** @description The refusal of a model, in place of content; stored as text. `limits.max_message_chars` sets the limit. */
            refusal?: string | null;
        };
        /** @description A link of a new memory or statement with a living node, both ways. */
        NewLink: {
            /**
             * @description The memory or entity.
             * @example n1
             */
            target: string;
            /**
             * @description Name of the relation, in both directions. `limits.max_relation_chars` sets the limit.
             * @example about
             */
            relation: string;
            /** @description Its strength now, above 0 to 1; default: 1. */
            strength?: number | null;
        };
        /** @description A cue for association, or a query. */
        RecallRequest: {
            /**
             * @description A question in plain language, answered from all messages of the agent. `limits.max_query_chars` sets the limit.
             * @example Where did Ann move in May?
             */
            query?: string | null;
            /** @description Only memories of these kinds: episode, kinds of statements, or your own; memory for all. With record, records too, or alone. In `recall`: hybrid mode only. `limits.max_keywords` sets the limit. */
            kinds?: string[];
            /** @description Only what these speakers said; `user` and `assistant` also find messages without a speaker. In `recall`: hybrid mode only. `limits.max_keywords` and `limits.max_name_chars` set the limits. */
            speakers?: string[];
            /** @description Only what was said in these conversations. In `recall`: hybrid mode only. `limits.max_keywords` and `limits.max_name_chars` set the limits. */
            sources?: string[];
            /** @description Only what was said in this period. */
            time_range?: components["schemas"]["TimeRange"] | null;
            /**
             * @description Only what was stored with each of these values. In `recall`: hybrid mode only. `limits.max_metadata_bytes` sets the limit.
             * @example null
             */
            metadata?: {
                [key: string]: unknown;
            } | null;
            /**
             * @description Most memories in the response; 0 means 10000; default: the agent's, but 20 at most in a `recall` with a query and no token budget.
             * @example 10
             */
            max_results?: number | null;
            /** @description When the archive (what was forgotten, shortened or not yet digested) takes part: always (the default), never, or when_needed (if living memories do not suffice). In `recall`: hybrid mode only. */
            archive?: ("always" | "never" | "when_needed") | null;
            /** @description Longest wait for batches accepted before, 0-30000; default: the daemon's, but 0 for a query that searches the archive, which includes texts that are not digested yet. */
            patience_ms?: number | null;
            /**
             * @description Words that a memory may contain, or that name its speaker or an entity it is linked with. Memories that match more of them come first; without keywords everything in reach matches. In hybrid mode: words to look for besides those of the query. `limits.max_keyword_chars` and `limits.max_keywords` set the limits.
             * @example [
             *       "Lisbon"
             *     ]
             */
            keywords?: string[];
            /**
             * @description auto: hybrid when a query is given, else associative.
             * @default auto
             * @enum {string}
             */
            mode?: "auto" | "associative" | "hybrid";
            /**
             * @description Follow only links with these names, and links with entities of these names. Names in no use are ignored and returned as `relations_unknown`. Associative mode only. `limits.max_relation_chars` and `limits.max_relations` set the limits.
             * @example []
             */
            relations?: string[];
            /**
             * @description Hops from where the search starts, 0-8; default: the agent's. `limits.max_depth` sets the limit.
             * @example 2
             */
            depth?: number | null;
            /** @description Start from these nodes instead of the focus; forgotten ones are ignored. Hybrid mode only. `limits.max_keywords` sets the limit. */
            start_nodes?: string[];
            /**
             * @description Most tokens of the text, counted by `tokenizer`; hybrid mode only.
             * @example 1000
             */
            token_budget?: number | null;
            /**
             * @description The token counter: estimate (never too few), characters, words, utf8_bytes; hybrid mode only.
             * @default estimate
             * @enum {string}
             */
            tokenizer?: "estimate" | "characters" | "words" | "utf8_bytes";
            /**
             * @description Shorten what does not fit the token budget to its key sentences; hybrid mode only.
             * @default false
             */
            key_sentences?: boolean;
            /**
             * @description Cite the sources of each memory, in the text and as `memories`; hybrid mode only.
             * @default false
             */
            citations?: boolean;
            /**
             * @description Return how the results were ranked, as `explanation`.
             * @default false
             */
            explain?: boolean;
            /** @description Put the date, in the agent's time_zone, before each memory of the text; default: true in hybrid mode, else false. */
            dates?: boolean | null;
            /** @description Signals to leave out: words, neighbours, semantic, window, speaker, dates, conversation, graph, naming, pagerank, weight, learned; hybrid mode only. */
            without?: ("words" | "neighbours" | "semantic" | "window" | "speaker" | "dates" | "conversation" | "graph" | "naming" | "pagerank" | "weight" | "learned")[];
        };
        /** @description One operation of a batch. Which fields it takes depends on `op`. */
        RecordOperation: {
            /**
             * @description put, get, delete, search or namespaces.
             * @example put
             * @enum {string}
             */
            op: "put" | "get" | "delete" | "search" | "namespaces";
            /**
             * @description put, get, delete: the place of the record; 1-16 labels of 1-200 characters.
             * @example [
             *       "users",
             *       "ann"
             *     ]
             */
            namespace?: string[];
            /**
             * @description put, get, delete: the name of the record; 1-500 characters.
             * @example theme
             */
            key?: string | null;
            /**
             * @description put: a JSON object of at most 256 KiB and 30 levels.
             * @example {
             *       "dark": true
             *     }
             */
            value?: {
                [key: string]: unknown;
            } | null;
            /** @description put: minutes until the record expires; default: never. */
            ttl_minutes?: number | null;
            /** @description put, delete: refuse the batch unless the record has this version; 0 if none may exist. */
            if_version?: number | null;
            /** @description put: paths to the texts that a query finds, such as title or notes[*].text; default: all texts in the value. */
            index?: string[];
            /**
             * @description put: whether no query finds the record.
             * @default false
             */
            no_index?: boolean;
            /**
             * @description get, search: let the records expire as long after now as after their last put.
             * @default false
             */
            refresh_ttl?: boolean;
            /** @description search: only in this namespace and below it. delete: delete all records there. */
            prefix?: string[];
            /**
             * @description search: only records with these values, also nested, or values that match $eq, $ne, $gt, $gte, $lt and $lte.
             * @example {
             *       "dark": true,
             *       "size": {
             *         "$gte": 2
             *       }
             *     }
             */
            filter?: {
                [key: string]: unknown;
            } | null;
            /**
             * @description search: only records with words of this question or text, the most relevant first. `limits.max_query_chars` sets the limit.
             * @example Where is the spare key?
             */
            query?: string | null;
            /** @description search, namespaces: most results, 1-1000; default 10, or 100 namespaces. */
            limit?: number | null;
            /** @description search, namespaces: how many results to leave out first; default 0. */
            offset?: number | null;
            /** @description search: key, by namespace and key (default), or -key, the reverse. */
            order?: ("key" | "-key") | null;
            /** @description namespaces: only those that fit every pattern. */
            match?: components["schemas"]["RecordPattern"][];
            /** @description namespaces: cut them to this many labels, each once. */
            max_depth?: number | null;
        };
        /** @description The first or the last labels of a namespace. */
        RecordPattern: {
            /**
             * @description prefix or suffix.
             * @enum {string}
             */
            type: "prefix" | "suffix";
            /** @description The labels; `*` matches any one. */
            path?: string[];
        };
        /** @description A record, or all records in a namespace and below it. */
        RecordSelection: {
            /**
             * @description Its place; 1-16 labels.
             * @example [
             *       "users"
             *     ]
             */
            namespace?: string[];
            /** @description Its name; default: all records there. */
            key?: string | null;
        };
        /** @description A part of an attachment: of a page, a picture or a recording, with words for it. */
        Region: {
            /** @description Its page, from 1. */
            page?: number | null;
            /** @description x, y, width and height as shares of the picture or page, from its top left corner. */
            box?: number[];
            /** @description Its begin in a recording, in ms. */
            begin_ms?: number | null;
            /** @description Its end in a recording, in ms. */
            end_ms?: number | null;
            /**
             * @description The words that describe it; queries find them.
             * @default
             */
            caption?: string;
        };
        /** @description A batch: one unit of the memory's time. */
        RememberRequest: {
            /** @description The messages, in order; 1-1000. `limits.max_messages` sets the limit. */
            messages: components["schemas"]["Message"][];
            /** @description Groups the batches of one conversation. `limits.max_name_chars` sets the limit. */
            conversation_id?: string | null;
            /** @description Free fields stored with the batch; at most 4 KiB as JSON. `limits.max_metadata_bytes` sets the limit. */
            metadata?: {
                [key: string]: unknown;
            } | null;
            /** @description Repeating a request with the same key and body has no further effect. `limits.max_name_chars` sets the limit. */
            idempotency_key?: string | null;
        };
        /** @description Which statement of a conflict is true. */
        ResolveConflictRequest: {
            /**
             * @description Id of the statement that is true.
             * @example n1
             */
            keep: string;
            /**
             * @description Id of the statement that it ends.
             * @example n2
             */
            drop: string;
            /**
             * @description Why, for the audit of the agent's knowledge.
             * @default
             */
            reason?: string;
        };
        /** @description Which statement was never true, and why. */
        RetractStatementRequest: {
            /**
             * @description Why, for the audit of the agent's knowledge.
             * @default
             */
            reason?: string;
        };
        /** @description What to look for, and what narrows the results. */
        SearchRequest: {
            /**
             * @description A question in plain language, answered from all messages of the agent. `limits.max_query_chars` sets the limit.
             * @example Where did Ann move in May?
             */
            query?: string | null;
            /** @description Only memories of these kinds: episode, kinds of statements, or your own; memory for all. With record, records too, or alone. In `recall`: hybrid mode only. `limits.max_keywords` sets the limit. */
            kinds?: string[];
            /** @description Only what these speakers said; `user` and `assistant` also find messages without a speaker. In `recall`: hybrid mode only. `limits.max_keywords` and `limits.max_name_chars` set the limits. */
            speakers?: string[];
            /** @description Only what was said in these conversations. In `recall`: hybrid mode only. `limits.max_keywords` and `limits.max_name_chars` set the limits. */
            sources?: string[];
            /** @description Only what was said in this period. */
            time_range?: components["schemas"]["TimeRange"] | null;
            /**
             * @description Only what was stored with each of these values. In `recall`: hybrid mode only. `limits.max_metadata_bytes` sets the limit.
             * @example null
             */
            metadata?: {
                [key: string]: unknown;
            } | null;
            /**
             * @description Most memories in the response; 0 means 10000; default: the agent's, but 20 at most in a `recall` with a query and no token budget.
             * @example 10
             */
            max_results?: number | null;
            /** @description When the archive (what was forgotten, shortened or not yet digested) takes part: always (the default), never, or when_needed (if living memories do not suffice). In `recall`: hybrid mode only. */
            archive?: ("always" | "never" | "when_needed") | null;
            /** @description Longest wait for batches accepted before, 0-30000; default: the daemon's, but 0 for a query that searches the archive, which includes texts that are not digested yet. */
            patience_ms?: number | null;
            /**
             * @description The query as a vector of the current embedding model, instead of `query` or with it.
             * @example []
             */
            vector?: number[];
            /** @description Only memories of messages accepted at or after this time: ms since the epoch, or ISO 8601. */
            created_after?: number | string | null;
            /**
             * @description Return each memory of a found passage by itself, with its own words; words without a memory with the id of their message.
             * @default false
             */
            own_words?: boolean;
        };
        /** @description The question, and limits of the answer. */
        SearchStatementsRequest: {
            /**
             * @description The question, in plain words. `limits.max_query_chars` sets the limit.
             * @example Where do I live?
             */
            query: string;
            /** @description Only statements of these kinds. */
            kinds?: ("fact" | "event" | "relation" | "opinion" | "preference" | "task" | "reflection")[];
            /** @description Only statements of messages of this time. */
            time_range?: components["schemas"]["TimeRange"] | null;
            /** @description Most statements, 1-100; default: 10. */
            max_results?: number | null;
            /**
             * @description fast: by words and meaning only; deep: also along links; auto: along links for a question that asks why, or if few statements are found.
             * @default auto
             * @enum {string}
             */
            mode?: "fast" | "deep" | "auto";
            /** @description Links to follow from a found statement, 0-3; default: 1. */
            expand_depth?: number | null;
            /** @description The time for which to answer; default: the end of a past time that the query names, else now. */
            as_of?: number | string | null;
            /** @description Answer with what was known at this time. */
            known_at?: number | string | null;
            /**
             * @description Also statements that are no longer true. A question such as 'Where did I live before?' finds them in any case.
             * @default false
             */
            include_past?: boolean;
        };
        /** @description How important a node is. */
        SetImportanceRequest: {
            /**
             * @description Strength of the links between the node and its entities, 0-1.
             * @example 0.8
             */
            importance: number;
        };
        /** @description A period of time; an end that is left out is open. */
        TimeRange: {
            /** @description From this time on: ms since the epoch, or ISO 8601. */
            begin?: number | string | null;
            /** @description Before this time: ms since the epoch, or ISO 8601. */
            end?: number | string | null;
        };
        /** @description A call of a tool by the assistant. */
        ToolCall: {
            /**
             * @description Id of the call; stored as metadata.
             * @example call_1
             */
            id?: string | null;
            /** @description Which of the two fields it has; `function` if it is missing. */
            type?: ("function" | "custom") | null;
            /** @description The function that is called. */
            function?: components["schemas"]["CalledFunction"] | null;
            /** @description The custom tool that is called. */
            custom?: components["schemas"]["CalledTool"] | null;
        } & {
            [key: string]: unknown;
        };
        /** @description What to change about a memory. */
        UpdateNodeRequest: {
            /**
             * @description The new content. `limits.max_message_chars` sets the limit.
             * @example I moved to Porto in May.
             */
            content?: string | null;
            /** @description The new keywords. Default: those of the new content; if content is omitted, they are unchanged. `limits.max_keyword_chars` and `limits.max_keywords` set the limits. */
            keywords?: string[];
            /** @description The new metadata, which replaces the old; flat, at most 4 KiB. `limits.max_metadata_bytes` sets the limit. */
            metadata?: {
                [key: string]: unknown;
            } | null;
        };
        /** @description Which audit log to verify, and texts to look for in it. */
        VerifyAuditRequest: {
            /** @description Texts to look for among what was erased; at most 100. `limits.max_message_chars` sets the limit. */
            texts?: string[];
        };
        /** @description Texts to look for, and whether among the records of one agent only. */
        VerifyErasedAgentsRequest: {
            /** @description Only records of this agent. */
            agent_id?: string | null;
            /** @description Texts to look for among what was erased; at most 100. `limits.max_message_chars` sets the limit. */
            texts?: string[];
        };
        /** @description How one agent remembers and forgets (memory model, section 7). A missing parameter has the daemon's default. */
        AgentParametersInput: {
            /** @description Most memories in focus, and most entities. */
            focus_limit?: number;
            /**
             * @description both: memories and entities move into focus; nodes: memories only, and no entities are created.
             * @enum {string}
             */
            focus_policy?: "both" | "nodes";
            /** @description A link's strength is multiplied by this each time its source is scanned. */
            decay_rate?: number;
            /** @description Strength of the links between neighbours within a batch. */
            link_initial_strength?: number;
            /** @description A link weaker than this is broken. */
            link_break_threshold?: number;
            /** @description A memory that would shrink below this many characters is forgotten. */
            delete_threshold?: number;
            /** @description Content is shortened only if it loses at least this share of its length. */
            min_shrink?: number;
            /** @description Most entities that a memory is linked with: its first keywords that are names. */
            entities_per_memory?: number;
            /** @description Newest memories of an entity in focus whose links do not decay. */
            entity_memories?: number;
            /** @description Most passes until an entity is scanned again. */
            entity_wait_max?: number;
            /**
             * @description scan: every due node in every pass; slots: a bounded number of nodes.
             * @enum {string}
             */
            strategy?: "scan" | "slots";
            /** @description Most memories under `slots`; at least focus_limit + 100 there. Entities do not count. */
            max_nodes?: number;
            /** @description Nodes drawn for one pass under `slots`. */
            compression_batch_size?: number;
            /** @description Nodes drawn to find the least important one when all `slots` are used. */
            slot_sample_size?: number;
            /** @description After k scans a node is due again 1 + floor(k x this) passes later; 0 = every pass. */
            long_term_factor?: number;
            /** @description Hops of a recall that specifies no depth. */
            default_search_depth?: number;
            /** @description Most memories in one answer; 0 means 10000. */
            max_search_results?: number;
            /** @description Newest memories containing a keyword at which a recall starts. */
            cue_memories?: number;
            /** @description Most pinned memories, which are neither shortened nor forgotten. */
            max_pinned?: number;
            /** @description Whether a memory in which the user asks to remember it is pinned. */
            pin_on_request?: boolean;
            /** @description Whether a segment that is only a question becomes a memory. */
            remember_questions?: boolean;
            /**
             * @description Language of the wording; auto decides by the text.
             * @enum {string}
             */
            locale?: "auto" | "zh" | "en";
            /**
             * @description When a memory is shown with its speaker.
             * @enum {string}
             */
            speaker_prefix?: "auto" | "always" | "never";
            /** @description Whether system messages become memories. */
            digest_system?: boolean;
            /** @description Whether calls of tools and their output become memories. */
            digest_tools?: boolean;
            /** @description Most batches in the inbox, waiting or parked; beyond it, remember is refused. */
            max_queue_size?: number;
            /** @description Most compression passes that an agent can owe; further ones are merged. */
            max_owed_passes?: number;
            /** @description One compression pass is owed for every so many tokens of new memories; 0: one for each batch. */
            pass_every_tokens?: number;
            /** @description Recommended longest segment, in characters. */
            segment_max_chars?: number;
            /** @description How long texts are kept after their digest: keep (for ever), days:N (N days after acceptance), evidence:N (as days:N, and longer while a true statement cites them), none. Their memories stay. */
            retention?: string;
            /**
             * @description Handling of personal data in new messages: off (no detection), tag (stored, with its positions), redact (replaced by its kind before anything is stored).
             * @enum {string}
             */
            pii?: "off" | "tag" | "redact";
            /** @description Whether text of recent recalls is removed from new messages. */
            drop_recalled?: boolean;
            /** @description Whether exact repetitions within a batch are dropped. */
            collapse_repeats?: boolean;
            /**
             * @description Whether statements are extracted from messages of the user: by rules, by the language model, or by both (docs/knowledge.md).
             * @enum {string}
             */
            extraction?: "off" | "rules" | "model" | "rules+model";
            /** @description Most statements that are kept, since they are true in a lasting slot, or pinned. */
            max_statements?: number;
            /** @description Hours between two consolidations of the statements; 0: on request only. */
            consolidation_interval_h?: number;
            /**
             * @description propose: names that may mean one thing are only listed; auto: such names of things, never of people, are merged if their meaning is close.
             * @enum {string}
             */
            merge_policy?: "propose" | "auto";
            /** @description Highest sum of the epsilons of counts with differential privacy. */
            privacy_budget?: number;
            /** @description Time zone of dates in texts, and in which words such as today are read: a name of the IANA database. */
            time_zone?: string;
        };
        /** @description How one agent remembers and forgets (memory model, section 7). null restores the daemon's default. */
        AgentParametersPatch: {
            /** @description Most memories in focus, and most entities. */
            focus_limit?: number | null;
            /** @description both: memories and entities move into focus; nodes: memories only, and no entities are created. */
            focus_policy?: ("both" | "nodes") | null;
            /** @description A link's strength is multiplied by this each time its source is scanned. */
            decay_rate?: number | null;
            /** @description Strength of the links between neighbours within a batch. */
            link_initial_strength?: number | null;
            /** @description A link weaker than this is broken. */
            link_break_threshold?: number | null;
            /** @description A memory that would shrink below this many characters is forgotten. */
            delete_threshold?: number | null;
            /** @description Content is shortened only if it loses at least this share of its length. */
            min_shrink?: number | null;
            /** @description Most entities that a memory is linked with: its first keywords that are names. */
            entities_per_memory?: number | null;
            /** @description Newest memories of an entity in focus whose links do not decay. */
            entity_memories?: number | null;
            /** @description Most passes until an entity is scanned again. */
            entity_wait_max?: number | null;
            /** @description scan: every due node in every pass; slots: a bounded number of nodes. */
            strategy?: ("scan" | "slots") | null;
            /** @description Most memories under `slots`; at least focus_limit + 100 there. Entities do not count. */
            max_nodes?: number | null;
            /** @description Nodes drawn for one pass under `slots`. */
            compression_batch_size?: number | null;
            /** @description Nodes drawn to find the least important one when all `slots` are used. */
            slot_sample_size?: number | null;
            /** @description After k scans a node is due again 1 + floor(k x this) passes later; 0 = every pass. */
            long_term_factor?: number | null;
            /** @description Hops of a recall that specifies no depth. */
            default_search_depth?: number | null;
            /** @description Most memories in one answer; 0 means 10000. */
            max_search_results?: number | null;
            /** @description Newest memories containing a keyword at which a recall starts. */
            cue_memories?: number | null;
            /** @description Most pinned memories, which are neither shortened nor forgotten. */
            max_pinned?: number | null;
            /** @description Whether a memory in which the user asks to remember it is pinned. */
            pin_on_request?: boolean | null;
            /** @description Whether a segment that is only a question becomes a memory. */
            remember_questions?: boolean | null;
            /** @description Language of the wording; auto decides by the text. */
            locale?: ("auto" | "zh" | "en") | null;
            /** @description When a memory is shown with its speaker. */
            speaker_prefix?: ("auto" | "always" | "never") | null;
            /** @description Whether system messages become memories. */
            digest_system?: boolean | null;
            /** @description Whether calls of tools and their output become memories. */
            digest_tools?: boolean | null;
            /** @description Most batches in the inbox, waiting or parked; beyond it, remember is refused. */
            max_queue_size?: number | null;
            /** @description Most compression passes that an agent can owe; further ones are merged. */
            max_owed_passes?: number | null;
            /** @description One compression pass is owed for every so many tokens of new memories; 0: one for each batch. */
            pass_every_tokens?: number | null;
            /** @description Recommended longest segment, in characters. */
            segment_max_chars?: number | null;
            /** @description How long texts are kept after their digest: keep (for ever), days:N (N days after acceptance), evidence:N (as days:N, and longer while a true statement cites them), none. Their memories stay. */
            retention?: string | null;
            /** @description Handling of personal data in new messages: off (no detection), tag (stored, with its positions), redact (replaced by its kind before anything is stored). */
            pii?: ("off" | "tag" | "redact") | null;
            /** @description Whether text of recent recalls is removed from new messages. */
            drop_recalled?: boolean | null;
            /** @description Whether exact repetitions within a batch are dropped. */
            collapse_repeats?: boolean | null;
            /** @description Whether statements are extracted from messages of the user: by rules, by the language model, or by both (docs/knowledge.md). */
            extraction?: ("off" | "rules" | "model" | "rules+model") | null;
            /** @description Most statements that are kept, since they are true in a lasting slot, or pinned. */
            max_statements?: number | null;
            /** @description Hours between two consolidations of the statements; 0: on request only. */
            consolidation_interval_h?: number | null;
            /** @description propose: names that may mean one thing are only listed; auto: such names of things, never of people, are merged if their meaning is close. */
            merge_policy?: ("propose" | "auto") | null;
            /** @description Highest sum of the epsilons of counts with differential privacy. */
            privacy_budget?: number | null;
            /** @description Time zone of dates in texts, and in which words such as today are read: a name of the IANA database. */
            time_zone?: string | null;
        };
    };
    responses: never;
    parameters: {
        /** @description Id of the request in the daemon's log. The daemon creates one if it is missing or malformed. */
        RequestId: string;
    };
    requestBodies: never;
    headers: {
        /** @description Id of the request in the daemon's log. The daemon creates one if it is missing or malformed. */
        RequestId: string;
        /** @description Seconds after which another attempt makes sense. */
        RetryAfter: number;
    };
    pathItems: never;
}
export type $defs = Record<string, never>;
export interface operations {
    remember: {
        parameters: {
            query?: never;
            header?: {
                /** @description Same as `idempotency_key`: a repeated request stores the batch once. */
                "Idempotency-Key"?: string;
                /** @description Id of the request in the daemon's log. The daemon creates one if it is missing or malformed. */
                "X-Request-Id"?: components["parameters"]["RequestId"];
            };
            path: {
                /**
                 * @description Id of the agent: 1-128 characters of any script.
                 * @example ann
                 */
                agent_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["RememberRequest"];
            };
        };
        responses: {
            /** @description The batch is stored durably. */
            202: {
                headers: {
                    /** @description Path of the batch. */
                    Location?: string;
                    "X-Request-Id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Remembered"];
                };
            };
            /** @description The request, the agent or a limit does not allow it. */
            "4XX": {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    "Retry-After": components["headers"]["RetryAfter"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Temporarily unavailable, or an internal error. */
            "5XX": {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    "Retry-After": components["headers"]["RetryAfter"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    recall: {
        parameters: {
            query?: never;
            header?: {
                /** @description Id of the request in the daemon's log. The daemon creates one if it is missing or malformed. */
                "X-Request-Id"?: components["parameters"]["RequestId"];
            };
            path: {
                /**
                 * @description Id of the agent: 1-128 characters of any script.
                 * @example ann
                 */
                agent_id: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["RecallRequest"];
            };
        };
        responses: {
            /** @description The result of a recall. */
            200: {
                headers: {
                    /** @description With text/plain: accepted batches not yet digested. */
                    "X-Pending-Batches"?: string;
                    /** @description With text/plain: batches parked after failures. */
                    "X-Parked-Batches"?: string;
                    /** @description With text/plain: messages found only by their words so far. */
                    "X-Unembedded-Messages"?: string;
                    "X-Request-Id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Recalled"];
                    "text/plain": string;
                };
            };
            /** @description The request, the agent or a limit does not allow it. */
            "4XX": {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    "Retry-After": components["headers"]["RetryAfter"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Temporarily unavailable, or an internal error. */
            "5XX": {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    "Retry-After": components["headers"]["RetryAfter"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    search: {
        parameters: {
            query?: never;
            header?: {
                /** @description Id of the request in the daemon's log. The daemon creates one if it is missing or malformed. */
                "X-Request-Id"?: components["parameters"]["RequestId"];
            };
            path: {
                /**
                 * @description Id of the agent: 1-128 characters of any script.
                 * @example ann
                 */
                agent_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["SearchRequest"];
            };
        };
        responses: {
            /** @description The found memories, best first. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Found"];
                };
            };
            /** @description The request, the agent or a limit does not allow it. */
            "4XX": {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    "Retry-After": components["headers"]["RetryAfter"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Temporarily unavailable, or an internal error. */
            "5XX": {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    "Retry-After": components["headers"]["RetryAfter"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    getAgent: {
        parameters: {
            query?: never;
            header?: {
                /** @description Id of the request in the daemon's log. The daemon creates one if it is missing or malformed. */
                "X-Request-Id"?: components["parameters"]["RequestId"];
            };
            path: {
                /**
                 * @description Id of the agent: 1-128 characters of any script.
                 * @example ann
                 */
                agent_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The current state of an agent. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AgentInfo"];
                };
            };
            /** @description The request, the agent or a limit does not allow it. */
            "4XX": {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    "Retry-After": components["headers"]["RetryAfter"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Temporarily unavailable, or an internal error. */
            "5XX": {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    "Retry-After": components["headers"]["RetryAfter"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    openAgent: {
        parameters: {
            query?: never;
            header?: {
                /** @description Id of the request in the daemon's log. The daemon creates one if it is missing or malformed. */
                "X-Request-Id"?: components["parameters"]["RequestId"];
            };
            path: {
                /**
                 * @description Id of the agent: 1-128 characters of any script.
                 * @example ann
                 */
                agent_id: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["AgentParametersInput"];
            };
        };
        responses: {
            /** @description The agent exists with the same parameters. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AgentInfo"];
                };
            };
            /** @description The agent was created. */
            201: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AgentInfo"];
                };
            };
            /** @description The request, the agent or a limit does not allow it. */
            "4XX": {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    "Retry-After": components["headers"]["RetryAfter"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Temporarily unavailable, or an internal error. */
            "5XX": {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    "Retry-After": components["headers"]["RetryAfter"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    deleteAgent: {
        parameters: {
            query?: never;
            header?: {
                /** @description Id of the request in the daemon's log. The daemon creates one if it is missing or malformed. */
                "X-Request-Id"?: components["parameters"]["RequestId"];
            };
            path: {
                /**
                 * @description Id of the agent: 1-128 characters of any script.
                 * @example ann
                 */
                agent_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The agent is deleted. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Erased"];
                };
            };
            /** @description The request, the agent or a limit does not allow it. */
            "4XX": {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    "Retry-After": components["headers"]["RetryAfter"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Temporarily unavailable, or an internal error. */
            "5XX": {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    "Retry-After": components["headers"]["RetryAfter"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    updateAgent: {
        parameters: {
            query?: never;
            header?: {
                /** @description Id of the request in the daemon's log. The daemon creates one if it is missing or malformed. */
                "X-Request-Id"?: components["parameters"]["RequestId"];
            };
            path: {
                /**
                 * @description Id of the agent: 1-128 characters of any script.
                 * @example ann
                 */
                agent_id: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["AgentParametersPatch"];
            };
        };
        responses: {
            /** @description The current state of an agent. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AgentInfo"];
                };
            };
            /** @description The request, the agent or a limit does not allow it. */
            "4XX": {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    "Retry-After": components["headers"]["RetryAfter"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Temporarily unavailable, or an internal error. */
            "5XX": {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    "Retry-After": components["headers"]["RetryAfter"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    getStats: {
        parameters: {
            query?: {
                /**
                 * @description Differential privacy: less is more private; 0.001-100, six decimals. Exact counts without it.
                 * @example 0.5
                 */
                epsilon?: number;
            };
            header?: {
                /** @description Id of the request in the daemon's log. The daemon creates one if it is missing or malformed. */
                "X-Request-Id"?: components["parameters"]["RequestId"];
            };
            path: {
                /**
                 * @description Id of the agent: 1-128 characters of any script.
                 * @example ann
                 */
                agent_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description How much an agent has stored. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AgentStats"];
                };
            };
            /** @description The request, the agent or a limit does not allow it. */
            "4XX": {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    "Retry-After": components["headers"]["RetryAfter"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Temporarily unavailable, or an internal error. */
            "5XX": {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    "Retry-After": components["headers"]["RetryAfter"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    listAgents: {
        parameters: {
            query?: {
                /** @description Most items on the page, 1-1000; default 100. `limits.max_page_size` sets the limit. */
                page_size?: number;
                /** @description `next_page_token` of the page before; empty for the first page. */
                page_token?: string;
            };
            header?: {
                /** @description Id of the request in the daemon's log. The daemon creates one if it is missing or malformed. */
                "X-Request-Id"?: components["parameters"]["RequestId"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of agents. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AgentPage"];
                };
            };
            /** @description The request, the agent or a limit does not allow it. */
            "4XX": {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    "Retry-After": components["headers"]["RetryAfter"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Temporarily unavailable, or an internal error. */
            "5XX": {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    "Retry-After": components["headers"]["RetryAfter"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    closeAgent: {
        parameters: {
            query?: never;
            header?: {
                /** @description Id of the request in the daemon's log. The daemon creates one if it is missing or malformed. */
                "X-Request-Id"?: components["parameters"]["RequestId"];
            };
            path: {
                /**
                 * @description Id of the agent: 1-128 characters of any script.
                 * @example ann
                 */
                agent_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The agent is closed. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Closed"];
                };
            };
            /** @description The request, the agent or a limit does not allow it. */
            "4XX": {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    "Retry-After": components["headers"]["RetryAfter"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Temporarily unavailable, or an internal error. */
            "5XX": {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    "Retry-After": components["headers"]["RetryAfter"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    clearAgent: {
        parameters: {
            query?: never;
            header?: {
                /** @description Id of the request in the daemon's log. The daemon creates one if it is missing or malformed. */
                "X-Request-Id"?: components["parameters"]["RequestId"];
            };
            path: {
                /**
                 * @description Id of the agent: 1-128 characters of any script.
                 * @example ann
                 */
                agent_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The data that was removed. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Cleared"];
                };
            };
            /** @description The request, the agent or a limit does not allow it. */
            "4XX": {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    "Retry-After": components["headers"]["RetryAfter"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Temporarily unavailable, or an internal error. */
            "5XX": {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    "Retry-After": components["headers"]["RetryAfter"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    listBatches: {
        parameters: {
            query?: {
                /** @description Most items on the page, 1-1000; default 100. `limits.max_page_size` sets the limit. */
                page_size?: number;
                /** @description `next_page_token` of the page before; empty for the first page. */
                page_token?: string;
                /** @description Only batches in this state: waiting, digesting, digested or parked. */
                state?: "waiting" | "digesting" | "digested" | "parked";
            };
            header?: {
                /** @description Id of the request in the daemon's log. The daemon creates one if it is missing or malformed. */
                "X-Request-Id"?: components["parameters"]["RequestId"];
            };
            path: {
                /**
                 * @description Id of the agent: 1-128 characters of any script.
                 * @example ann
                 */
                agent_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of batches. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["BatchPage"];
                };
            };
            /** @description The request, the agent or a limit does not allow it. */
            "4XX": {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    "Retry-After": components["headers"]["RetryAfter"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Temporarily unavailable, or an internal error. */
            "5XX": {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    "Retry-After": components["headers"]["RetryAfter"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    getBatch: {
        parameters: {
            query?: never;
            header?: {
                /** @description Id of the request in the daemon's log. The daemon creates one if it is missing or malformed. */
                "X-Request-Id"?: components["parameters"]["RequestId"];
            };
            path: {
                /**
                 * @description Id of the agent: 1-128 characters of any script.
                 * @example ann
                 */
                agent_id: string;
                /**
                 * @description The batch, as Remember returned it.
                 * @example b1
                 */
                batch_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The current state of a batch. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["BatchInfo"];
                };
            };
            /** @description The request, the agent or a limit does not allow it. */
            "4XX": {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    "Retry-After": components["headers"]["RetryAfter"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Temporarily unavailable, or an internal error. */
            "5XX": {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    "Retry-After": components["headers"]["RetryAfter"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    retryBatch: {
        parameters: {
            query?: never;
            header?: {
                /** @description Id of the request in the daemon's log. The daemon creates one if it is missing or malformed. */
                "X-Request-Id"?: components["parameters"]["RequestId"];
            };
            path: {
                /**
                 * @description Id of the agent: 1-128 characters of any script.
                 * @example ann
                 */
                agent_id: string;
                /**
                 * @description The batch, as Remember returned it.
                 * @example b1
                 */
                batch_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The current state of a batch. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["BatchInfo"];
                };
            };
            /** @description The request, the agent or a limit does not allow it. */
            "4XX": {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    "Retry-After": components["headers"]["RetryAfter"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Temporarily unavailable, or an internal error. */
            "5XX": {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    "Retry-After": components["headers"]["RetryAfter"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    flush: {
        parameters: {
            query?: never;
            header?: {
                /** @description Id of the request in the daemon's log. The daemon creates one if it is missing or malformed. */
                "X-Request-Id"?: components["parameters"]["RequestId"];
            };
            path: {
                /**
                 * @description Id of the agent: 1-128 characters of any script.
                 * @example ann
                 */
                agent_id: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["FlushRequest"];
            };
        };
        responses: {
            /** @description The state after waiting, also if the timeout expired. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Flushed"];
                };
            };
            /** @description The request, the agent or a limit does not allow it. */
            "4XX": {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    "Retry-After": components["headers"]["RetryAfter"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Temporarily unavailable, or an internal error. */
            "5XX": {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    "Retry-After": components["headers"]["RetryAfter"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    compress: {
        parameters: {
            query?: never;
            header?: {
                /** @description Id of the request in the daemon's log. The daemon creates one if it is missing or malformed. */
                "X-Request-Id"?: components["parameters"]["RequestId"];
            };
            path: {
                /**
                 * @description Id of the agent: 1-128 characters of any script.
                 * @example ann
                 */
                agent_id: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["CompressRequest"];
            };
        };
        responses: {
            /** @description The passes owed now. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Compressing"];
                };
            };
            /** @description The request, the agent or a limit does not allow it. */
            "4XX": {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    "Retry-After": components["headers"]["RetryAfter"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Temporarily unavailable, or an internal error. */
            "5XX": {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    "Retry-After": components["headers"]["RetryAfter"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    getFocus: {
        parameters: {
            query?: never;
            header?: {
                /** @description Id of the request in the daemon's log. The daemon creates one if it is missing or malformed. */
                "X-Request-Id"?: components["parameters"]["RequestId"];
            };
            path: {
                /**
                 * @description Id of the agent: 1-128 characters of any script.
                 * @example ann
                 */
                agent_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The agent's focus. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["FocusInfo"];
                };
            };
            /** @description The request, the agent or a limit does not allow it. */
            "4XX": {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    "Retry-After": components["headers"]["RetryAfter"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Temporarily unavailable, or an internal error. */
            "5XX": {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    "Retry-After": components["headers"]["RetryAfter"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    focusNode: {
        parameters: {
            query?: never;
            header?: {
                /** @description Id of the request in the daemon's log. The daemon creates one if it is missing or malformed. */
                "X-Request-Id"?: components["parameters"]["RequestId"];
            };
            path: {
                /**
                 * @description Id of the agent: 1-128 characters of any script.
                 * @example ann
                 */
                agent_id: string;
                /**
                 * @description The node.
                 * @example n1
                 */
                node_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The agent's focus. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["FocusInfo"];
                };
            };
            /** @description The request, the agent or a limit does not allow it. */
            "4XX": {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    "Retry-After": components["headers"]["RetryAfter"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Temporarily unavailable, or an internal error. */
            "5XX": {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    "Retry-After": components["headers"]["RetryAfter"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    unfocusNode: {
        parameters: {
            query?: never;
            header?: {
                /** @description Id of the request in the daemon's log. The daemon creates one if it is missing or malformed. */
                "X-Request-Id"?: components["parameters"]["RequestId"];
            };
            path: {
                /**
                 * @description Id of the agent: 1-128 characters of any script.
                 * @example ann
                 */
                agent_id: string;
                /**
                 * @description The node.
                 * @example n1
                 */
                node_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The agent's focus. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["FocusInfo"];
                };
            };
            /** @description The request, the agent or a limit does not allow it. */
            "4XX": {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    "Retry-After": components["headers"]["RetryAfter"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Temporarily unavailable, or an internal error. */
            "5XX": {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    "Retry-After": components["headers"]["RetryAfter"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    listEntities: {
        parameters: {
            query?: {
                /** @description Most items on the page, 1-1000; default 100. `limits.max_page_size` sets the limit. */
                page_size?: number;
                /** @description `next_page_token` of the page before; empty for the first page. */
                page_token?: string;
            };
            header?: {
                /** @description Id of the request in the daemon's log. The daemon creates one if it is missing or malformed. */
                "X-Request-Id"?: components["parameters"]["RequestId"];
            };
            path: {
                /**
                 * @description Id of the agent: 1-128 characters of any script.
                 * @example ann
                 */
                agent_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of entities. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["EntityPage"];
                };
            };
            /** @description The request, the agent or a limit does not allow it. */
            "4XX": {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    "Retry-After": components["headers"]["RetryAfter"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Temporarily unavailable, or an internal error. */
            "5XX": {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    "Retry-After": components["headers"]["RetryAfter"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    listMessages: {
        parameters: {
            query?: {
                /** @description Most items on the page, 1-1000; default 100. `limits.max_page_size` sets the limit. */
                page_size?: number;
                /** @description `next_page_token` of the page before; empty for the first page. */
                page_token?: string;
                /** @description Only messages that were stored with each of these values. Over REST as JSON. `limits.max_metadata_bytes` sets the limit. */
                metadata?: string;
            };
            header?: {
                /** @description Id of the request in the daemon's log. The daemon creates one if it is missing or malformed. */
                "X-Request-Id"?: components["parameters"]["RequestId"];
            };
            path: {
                /**
                 * @description Id of the agent: 1-128 characters of any script.
                 * @example ann
                 */
                agent_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of messages. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["MessagePage"];
                };
            };
            /** @description The request, the agent or a limit does not allow it. */
            "4XX": {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    "Retry-After": components["headers"]["RetryAfter"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Temporarily unavailable, or an internal error. */
            "5XX": {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    "Retry-After": components["headers"]["RetryAfter"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    getAttachment: {
        parameters: {
            query?: never;
            header?: {
                /** @description Id of the request in the daemon's log. The daemon creates one if it is missing or malformed. */
                "X-Request-Id"?: components["parameters"]["RequestId"];
            };
            path: {
                /**
                 * @description Id of the agent: 1-128 characters of any script.
                 * @example ann
                 */
                agent_id: string;
                /**
                 * @description Id of the message.
                 * @example m1
                 */
                message: string;
                /**
                 * @description Position of the attachment in the message, from 0.
                 * @example 0
                 */
                index: number;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The attachment, as its media type. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/octet-stream": Blob;
                };
            };
            /** @description The request, the agent or a limit does not allow it. */
            "4XX": {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    "Retry-After": components["headers"]["RetryAfter"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Temporarily unavailable, or an internal error. */
            "5XX": {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    "Retry-After": components["headers"]["RetryAfter"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    listNodes: {
        parameters: {
            query?: {
                /** @description Most items on the page, 1-1000; default 100. `limits.max_page_size` sets the limit. */
                page_size?: number;
                /** @description `next_page_token` of the page before; empty for the first page. */
                page_token?: string;
                /** @description Only nodes of these kinds: episode, entity, concept, kinds of statements, or your own; default: episode and your own. Over REST separated by commas. `limits.max_keywords` sets the limit. */
                kinds?: string[];
                /** @description Only memories of a message that was stored with each of these values. Over REST as JSON. `limits.max_metadata_bytes` sets the limit. */
                metadata?: string;
                /** @description Whether the newest are listed first; memories only. */
                newest_first?: boolean;
                /** @description These nodes of any kind, in this order, at most 100; not with other options, and `page_size` has no effect. Those that are forgotten, deleted or unknown are left out. Over REST separated by commas. */
                ids?: string[];
                /** @description Whether to return the nodes as GetNode does, in `details`; only with `ids`. */
                details?: boolean;
            };
            header?: {
                /** @description Id of the request in the daemon's log. The daemon creates one if it is missing or malformed. */
                "X-Request-Id"?: components["parameters"]["RequestId"];
            };
            path: {
                /**
                 * @description Id of the agent: 1-128 characters of any script.
                 * @example ann
                 */
                agent_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of nodes. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["NodePage"];
                };
            };
            /** @description The request, the agent or a limit does not allow it. */
            "4XX": {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    "Retry-After": components["headers"]["RetryAfter"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Temporarily unavailable, or an internal error. */
            "5XX": {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    "Retry-After": components["headers"]["RetryAfter"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    createNode: {
        parameters: {
            query?: never;
            header?: {
                /** @description Id of the request in the daemon's log. The daemon creates one if it is missing or malformed. */
                "X-Request-Id"?: components["parameters"]["RequestId"];
            };
            path: {
                /**
                 * @description Id of the agent: 1-128 characters of any script.
                 * @example ann
                 */
                agent_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["CreateNodeRequest"];
            };
        };
        responses: {
            /** @description A memory with its first content and its live links. */
            201: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["NodeDetail"];
                };
            };
            /** @description The request, the agent or a limit does not allow it. */
            "4XX": {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    "Retry-After": components["headers"]["RetryAfter"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Temporarily unavailable, or an internal error. */
            "5XX": {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    "Retry-After": components["headers"]["RetryAfter"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    getNode: {
        parameters: {
            query?: never;
            header?: {
                /** @description Id of the request in the daemon's log. The daemon creates one if it is missing or malformed. */
                "X-Request-Id"?: components["parameters"]["RequestId"];
            };
            path: {
                /**
                 * @description Id of the agent: 1-128 characters of any script.
                 * @example ann
                 */
                agent_id: string;
                /**
                 * @description The node.
                 * @example n1
                 */
                node_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A memory with its first content and its live links. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["NodeDetail"];
                };
            };
            /** @description The request, the agent or a limit does not allow it. */
            "4XX": {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    "Retry-After": components["headers"]["RetryAfter"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Temporarily unavailable, or an internal error. */
            "5XX": {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    "Retry-After": components["headers"]["RetryAfter"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    deleteNode: {
        parameters: {
            query?: never;
            header?: {
                /** @description Id of the request in the daemon's log. The daemon creates one if it is missing or malformed. */
                "X-Request-Id"?: components["parameters"]["RequestId"];
            };
            path: {
                /**
                 * @description Id of the agent: 1-128 characters of any script.
                 * @example ann
                 */
                agent_id: string;
                /**
                 * @description The node.
                 * @example n1
                 */
                node_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The items deleted with a memory, or from a message. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DeletedNode"];
                };
            };
            /** @description The request, the agent or a limit does not allow it. */
            "4XX": {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    "Retry-After": components["headers"]["RetryAfter"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Temporarily unavailable, or an internal error. */
            "5XX": {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    "Retry-After": components["headers"]["RetryAfter"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    updateNode: {
        parameters: {
            query?: never;
            header?: {
                /** @description Id of the request in the daemon's log. The daemon creates one if it is missing or malformed. */
                "X-Request-Id"?: components["parameters"]["RequestId"];
            };
            path: {
                /**
                 * @description Id of the agent: 1-128 characters of any script.
                 * @example ann
                 */
                agent_id: string;
                /**
                 * @description The node.
                 * @example n1
                 */
                node_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["UpdateNodeRequest"];
            };
        };
        responses: {
            /** @description A memory with its first content and its live links. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["NodeDetail"];
                };
            };
            /** @description The request, the agent or a limit does not allow it. */
            "4XX": {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    "Retry-After": components["headers"]["RetryAfter"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Temporarily unavailable, or an internal error. */
            "5XX": {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    "Retry-After": components["headers"]["RetryAfter"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    listLinks: {
        parameters: {
            query?: {
                /** @description Most items on the page, 1-1000; default 100. `limits.max_page_size` sets the limit. */
                page_size?: number;
                /** @description `next_page_token` of the page before; empty for the first page. */
                page_token?: string;
            };
            header?: {
                /** @description Id of the request in the daemon's log. The daemon creates one if it is missing or malformed. */
                "X-Request-Id"?: components["parameters"]["RequestId"];
            };
            path: {
                /**
                 * @description Id of the agent: 1-128 characters of any script.
                 * @example ann
                 */
                agent_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of links. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["LinkPage"];
                };
            };
            /** @description The request, the agent or a limit does not allow it. */
            "4XX": {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    "Retry-After": components["headers"]["RetryAfter"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Temporarily unavailable, or an internal error. */
            "5XX": {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    "Retry-After": components["headers"]["RetryAfter"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    createLink: {
        parameters: {
            query?: never;
            header?: {
                /** @description Id of the request in the daemon's log. The daemon creates one if it is missing or malformed. */
                "X-Request-Id"?: components["parameters"]["RequestId"];
            };
            path: {
                /**
                 * @description Id of the agent: 1-128 characters of any script.
                 * @example ann
                 */
                agent_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["CreateLinkRequest"];
            };
        };
        responses: {
            /** @description A live link. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["LinkInfo"];
                };
            };
            /** @description The request, the agent or a limit does not allow it. */
            "4XX": {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    "Retry-After": components["headers"]["RetryAfter"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Temporarily unavailable, or an internal error. */
            "5XX": {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    "Retry-After": components["headers"]["RetryAfter"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    getMap: {
        parameters: {
            query?: {
                /** @description Most nodes on the page, 1-100000; default 20000. */
                page_size?: number;
                /** @description `next_page_token` of the page before; empty for the first page. */
                page_token?: string;
                /** @description none, or all: also the live links from the nodes of the page. */
                links?: "none" | "all";
            };
            header?: {
                /** @description Id of the request in the daemon's log. The daemon creates one if it is missing or malformed. */
                "X-Request-Id"?: components["parameters"]["RequestId"];
            };
            path: {
                /**
                 * @description Id of the agent: 1-128 characters of any script.
                 * @example ann
                 */
                agent_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Living nodes and their links, as columns. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AgentMap"];
                };
            };
            /** @description The request, the agent or a limit does not allow it. */
            "4XX": {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    "Retry-After": components["headers"]["RetryAfter"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Temporarily unavailable, or an internal error. */
            "5XX": {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    "Retry-After": components["headers"]["RetryAfter"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    getHistory: {
        parameters: {
            query?: {
                /** @description Most lives and events on the page, 1-200000; default 100000. */
                page_size?: number;
                /** @description `next_page_token` of the page before; empty for the first page. */
                page_token?: string;
                /** @description Only what happened from this pass on; births count with `after`. */
                from_pass?: number;
                /** @description Only what happened up to this pass; births count with `after`. */
                to_pass?: number;
            };
            header?: {
                /** @description Id of the request in the daemon's log. The daemon creates one if it is missing or malformed. */
                "X-Request-Id"?: components["parameters"]["RequestId"];
            };
            path: {
                /**
                 * @description Id of the agent: 1-128 characters of any script.
                 * @example ann
                 */
                agent_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The lives of memories and statements, as columns. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AgentHistory"];
                };
            };
            /** @description The request, the agent or a limit does not allow it. */
            "4XX": {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    "Retry-After": components["headers"]["RetryAfter"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Temporarily unavailable, or an internal error. */
            "5XX": {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    "Retry-After": components["headers"]["RetryAfter"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    forecast: {
        parameters: {
            query?: never;
            header?: {
                /** @description Id of the request in the daemon's log. The daemon creates one if it is missing or malformed. */
                "X-Request-Id"?: components["parameters"]["RequestId"];
            };
            path: {
                /**
                 * @description Id of the agent: 1-128 characters of any script.
                 * @example ann
                 */
                agent_id: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["ForecastRequest"];
            };
        };
        responses: {
            /** @description The shortenings and ends to come, as columns. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AgentForecast"];
                };
            };
            /** @description The request, the agent or a limit does not allow it. */
            "4XX": {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    "Retry-After": components["headers"]["RetryAfter"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Temporarily unavailable, or an internal error. */
            "5XX": {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    "Retry-After": components["headers"]["RetryAfter"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    getNodeHistory: {
        parameters: {
            query?: never;
            header?: {
                /** @description Id of the request in the daemon's log. The daemon creates one if it is missing or malformed. */
                "X-Request-Id"?: components["parameters"]["RequestId"];
            };
            path: {
                /**
                 * @description Id of the agent: 1-128 characters of any script.
                 * @example ann
                 */
                agent_id: string;
                /**
                 * @description The node.
                 * @example n1
                 */
                node_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The life of a memory or statement. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["NodeHistory"];
                };
            };
            /** @description The request, the agent or a limit does not allow it. */
            "4XX": {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    "Retry-After": components["headers"]["RetryAfter"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Temporarily unavailable, or an internal error. */
            "5XX": {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    "Retry-After": components["headers"]["RetryAfter"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    pinNode: {
        parameters: {
            query?: never;
            header?: {
                /** @description Id of the request in the daemon's log. The daemon creates one if it is missing or malformed. */
                "X-Request-Id"?: components["parameters"]["RequestId"];
            };
            path: {
                /**
                 * @description Id of the agent: 1-128 characters of any script.
                 * @example ann
                 */
                agent_id: string;
                /**
                 * @description The node.
                 * @example n1
                 */
                node_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A memory with its first content and its live links. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["NodeDetail"];
                };
            };
            /** @description The request, the agent or a limit does not allow it. */
            "4XX": {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    "Retry-After": components["headers"]["RetryAfter"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Temporarily unavailable, or an internal error. */
            "5XX": {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    "Retry-After": components["headers"]["RetryAfter"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    unpinNode: {
        parameters: {
            query?: never;
            header?: {
                /** @description Id of the request in the daemon's log. The daemon creates one if it is missing or malformed. */
                "X-Request-Id"?: components["parameters"]["RequestId"];
            };
            path: {
                /**
                 * @description Id of the agent: 1-128 characters of any script.
                 * @example ann
                 */
                agent_id: string;
                /**
                 * @description The node.
                 * @example n1
                 */
                node_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A memory with its first content and its live links. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["NodeDetail"];
                };
            };
            /** @description The request, the agent or a limit does not allow it. */
            "4XX": {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    "Retry-After": components["headers"]["RetryAfter"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Temporarily unavailable, or an internal error. */
            "5XX": {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    "Retry-After": components["headers"]["RetryAfter"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    deleteNodes: {
        parameters: {
            query?: never;
            header?: {
                /** @description Id of the request in the daemon's log. The daemon creates one if it is missing or malformed. */
                "X-Request-Id"?: components["parameters"]["RequestId"];
            };
            path: {
                /**
                 * @description Id of the agent: 1-128 characters of any script.
                 * @example ann
                 */
                agent_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["DeleteNodesRequest"];
            };
        };
        responses: {
            /** @description The result for each memory, in the order of the request. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DeletedNodes"];
                };
            };
            /** @description The request, the agent or a limit does not allow it. */
            "4XX": {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    "Retry-After": components["headers"]["RetryAfter"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Temporarily unavailable, or an internal error. */
            "5XX": {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    "Retry-After": components["headers"]["RetryAfter"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    forgetMemories: {
        parameters: {
            query?: never;
            header?: {
                /** @description Id of the request in the daemon's log. The daemon creates one if it is missing or malformed. */
                "X-Request-Id"?: components["parameters"]["RequestId"];
            };
            path: {
                /**
                 * @description Id of the agent: 1-128 characters of any script.
                 * @example ann
                 */
                agent_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ForgetRequest"];
            };
        };
        responses: {
            /** @description The erased items; in a dry run, the items that would be erased. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Forgotten"];
                };
            };
            /** @description The request, the agent or a limit does not allow it. */
            "4XX": {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    "Retry-After": components["headers"]["RetryAfter"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Temporarily unavailable, or an internal error. */
            "5XX": {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    "Retry-After": components["headers"]["RetryAfter"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    listAuditRecords: {
        parameters: {
            query?: {
                /** @description Most items on the page, 1-1000; default 100. `limits.max_page_size` sets the limit. */
                page_size?: number;
                /** @description `next_page_token` of the page before; empty for the first page. */
                page_token?: string;
                /** @description Whether the newest are listed first. */
                newest_first?: boolean;
            };
            header?: {
                /** @description Id of the request in the daemon's log. The daemon creates one if it is missing or malformed. */
                "X-Request-Id"?: components["parameters"]["RequestId"];
            };
            path: {
                /**
                 * @description Id of the agent: 1-128 characters of any script.
                 * @example ann
                 */
                agent_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of an audit log. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AuditPage"];
                };
            };
            /** @description The request, the agent or a limit does not allow it. */
            "4XX": {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    "Retry-After": components["headers"]["RetryAfter"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Temporarily unavailable, or an internal error. */
            "5XX": {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    "Retry-After": components["headers"]["RetryAfter"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    verifyAudit: {
        parameters: {
            query?: never;
            header?: {
                /** @description Id of the request in the daemon's log. The daemon creates one if it is missing or malformed. */
                "X-Request-Id"?: components["parameters"]["RequestId"];
            };
            path: {
                /**
                 * @description Id of the agent: 1-128 characters of any script.
                 * @example ann
                 */
                agent_id: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["VerifyAuditRequest"];
            };
        };
        responses: {
            /** @description Whether an audit log is intact. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AuditVerified"];
                };
            };
            /** @description The request, the agent or a limit does not allow it. */
            "4XX": {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    "Retry-After": components["headers"]["RetryAfter"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Temporarily unavailable, or an internal error. */
            "5XX": {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    "Retry-After": components["headers"]["RetryAfter"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    listErasedAgents: {
        parameters: {
            query?: {
                /** @description Only records of this agent. */
                agent_id?: string;
                /** @description Most items on the page, 1-1000; default 100. `limits.max_page_size` sets the limit. */
                page_size?: number;
                /** @description `next_page_token` of the page before; empty for the first page. */
                page_token?: string;
            };
            header?: {
                /** @description Id of the request in the daemon's log. The daemon creates one if it is missing or malformed. */
                "X-Request-Id"?: components["parameters"]["RequestId"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of the log of erased agents. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErasedAgentPage"];
                };
            };
            /** @description The request, the agent or a limit does not allow it. */
            "4XX": {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    "Retry-After": components["headers"]["RetryAfter"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Temporarily unavailable, or an internal error. */
            "5XX": {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    "Retry-After": components["headers"]["RetryAfter"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    verifyErasedAgents: {
        parameters: {
            query?: never;
            header?: {
                /** @description Id of the request in the daemon's log. The daemon creates one if it is missing or malformed. */
                "X-Request-Id"?: components["parameters"]["RequestId"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["VerifyErasedAgentsRequest"];
            };
        };
        responses: {
            /** @description Whether an audit log is intact. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AuditVerified"];
                };
            };
            /** @description The request, the agent or a limit does not allow it. */
            "4XX": {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    "Retry-After": components["headers"]["RetryAfter"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Temporarily unavailable, or an internal error. */
            "5XX": {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    "Retry-After": components["headers"]["RetryAfter"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    backupAgent: {
        parameters: {
            query?: never;
            header?: {
                /** @description Id of the request in the daemon's log. The daemon creates one if it is missing or malformed. */
                "X-Request-Id"?: components["parameters"]["RequestId"];
            };
            path: {
                /**
                 * @description Id of the agent: 1-128 characters of any script.
                 * @example ann
                 */
                agent_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The backup. */
            200: {
                headers: {
                    /** @description Suggested file name. */
                    "Content-Disposition"?: string;
                    "X-Request-Id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/octet-stream": Blob;
                };
            };
            /** @description The request, the agent or a limit does not allow it. */
            "4XX": {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    "Retry-After": components["headers"]["RetryAfter"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Temporarily unavailable, or an internal error. */
            "5XX": {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    "Retry-After": components["headers"]["RetryAfter"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    exportAgent: {
        parameters: {
            query?: never;
            header?: {
                /** @description Id of the request in the daemon's log. The daemon creates one if it is missing or malformed. */
                "X-Request-Id"?: components["parameters"]["RequestId"];
            };
            path: {
                /**
                 * @description Id of the agent: 1-128 characters of any script.
                 * @example ann
                 */
                agent_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The export. */
            200: {
                headers: {
                    /** @description Suggested file name. */
                    "Content-Disposition"?: string;
                    "X-Request-Id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/x-ndjson": string;
                };
            };
            /** @description The request, the agent or a limit does not allow it. */
            "4XX": {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    "Retry-After": components["headers"]["RetryAfter"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Temporarily unavailable, or an internal error. */
            "5XX": {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    "Retry-After": components["headers"]["RetryAfter"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    restoreAgent: {
        parameters: {
            query?: {
                /** @description Replace an existing agent with this id. */
                replace?: boolean;
                /** @description Accept the backup of an agent with another id. */
                rename?: boolean;
            };
            header?: {
                /** @description Id of the request in the daemon's log. The daemon creates one if it is missing or malformed. */
                "X-Request-Id"?: components["parameters"]["RequestId"];
            };
            path: {
                /**
                 * @description Id of the agent: 1-128 characters of any script.
                 * @example ann
                 */
                agent_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/octet-stream": Blob;
                "application/x-ndjson": string;
            };
        };
        responses: {
            /** @description The restored agent. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Restored"];
                };
            };
            /** @description The request, the agent or a limit does not allow it. */
            "4XX": {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    "Retry-After": components["headers"]["RetryAfter"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Temporarily unavailable, or an internal error. */
            "5XX": {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    "Retry-After": components["headers"]["RetryAfter"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    watchEvents: {
        parameters: {
            query?: {
                /** @description Number of the last event received; -1: only events that happen from now on; default: from the oldest event that is kept. */
                after?: number;
                /** @description false: end after the events that exist now. */
                follow?: boolean;
            };
            header?: {
                /** @description Number of the last event that the client received. Overrides `after`. */
                "Last-Event-ID"?: string;
                /** @description Id of the request in the daemon's log. The daemon creates one if it is missing or malformed. */
                "X-Request-Id"?: components["parameters"]["RequestId"];
            };
            path: {
                /**
                 * @description Id of the agent: 1-128 characters of any script.
                 * @example ann
                 */
                agent_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A stream of events; each has one of these as its data. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "text/event-stream": components["schemas"]["EventInfo"];
                };
            };
            /** @description The request, the agent or a limit does not allow it. */
            "4XX": {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    "Retry-After": components["headers"]["RetryAfter"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Temporarily unavailable, or an internal error. */
            "5XX": {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    "Retry-After": components["headers"]["RetryAfter"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    listStatements: {
        parameters: {
            query?: {
                /** @description Most items on the page, 1-1000; default 100. `limits.max_page_size` sets the limit. */
                page_size?: number;
                /** @description `next_page_token` of the page before; empty for the first page. */
                page_token?: string;
                /**
                 * @description Only those about this entity: a name, I, or an id.
                 * @example user
                 */
                subject?: string;
                /**
                 * @description Only those on this topic.
                 * @example residence
                 */
                topic?: string;
                /** @description Only those of these kinds. Over REST separated by commas. */
                kinds?: ("fact" | "event" | "relation" | "opinion" | "preference" | "task" | "reflection")[];
                /** @description Only those in these states; default: current, contested and planned. */
                states?: ("current" | "contested" | "planned" | "superseded" | "ended" | "corrected" | "retracted" | "forgotten")[];
                /** @description The time for which to answer; default: now. */
                as_of?: number | string;
                /** @description Answer with what was known at this time; default: everything. */
                known_at?: number | string;
                /** @description Only those that a message with each of these values supports. Over REST as JSON. `limits.max_metadata_bytes` sets the limit. */
                metadata?: string;
            };
            header?: {
                /** @description Id of the request in the daemon's log. The daemon creates one if it is missing or malformed. */
                "X-Request-Id"?: components["parameters"]["RequestId"];
            };
            path: {
                /**
                 * @description Id of the agent: 1-128 characters of any script.
                 * @example ann
                 */
                agent_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of statements. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["StatementPage"];
                };
            };
            /** @description The request, the agent or a limit does not allow it. */
            "4XX": {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    "Retry-After": components["headers"]["RetryAfter"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Temporarily unavailable, or an internal error. */
            "5XX": {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    "Retry-After": components["headers"]["RetryAfter"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    createStatement: {
        parameters: {
            query?: never;
            header?: {
                /** @description Id of the request in the daemon's log. The daemon creates one if it is missing or malformed. */
                "X-Request-Id"?: components["parameters"]["RequestId"];
            };
            path: {
                /**
                 * @description Id of the agent: 1-128 characters of any script.
                 * @example ann
                 */
                agent_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["CreateStatementRequest"];
            };
        };
        responses: {
            /** @description An earlier statement already said this; it is returned. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["CreatedStatement"];
                };
            };
            /** @description The statement was stored. */
            201: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["CreatedStatement"];
                };
            };
            /** @description The request, the agent or a limit does not allow it. */
            "4XX": {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    "Retry-After": components["headers"]["RetryAfter"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Temporarily unavailable, or an internal error. */
            "5XX": {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    "Retry-After": components["headers"]["RetryAfter"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    getStatement: {
        parameters: {
            query?: {
                /** @description The time for which to answer; default: now. */
                as_of?: number | string;
                /** @description Answer with what was known at this time; default: everything. */
                known_at?: number | string;
            };
            header?: {
                /** @description Id of the request in the daemon's log. The daemon creates one if it is missing or malformed. */
                "X-Request-Id"?: components["parameters"]["RequestId"];
            };
            path: {
                /**
                 * @description Id of the agent: 1-128 characters of any script.
                 * @example ann
                 */
                agent_id: string;
                /**
                 * @description Id of the statement.
                 * @example n1
                 */
                node_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A statement at a time. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["StatementInfo"];
                };
            };
            /** @description The request, the agent or a limit does not allow it. */
            "4XX": {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    "Retry-After": components["headers"]["RetryAfter"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Temporarily unavailable, or an internal error. */
            "5XX": {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    "Retry-After": components["headers"]["RetryAfter"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    correctStatement: {
        parameters: {
            query?: never;
            header?: {
                /** @description Id of the request in the daemon's log. The daemon creates one if it is missing or malformed. */
                "X-Request-Id"?: components["parameters"]["RequestId"];
            };
            path: {
                /**
                 * @description Id of the agent: 1-128 characters of any script.
                 * @example ann
                 */
                agent_id: string;
                /**
                 * @description Id of the statement.
                 * @example n1
                 */
                node_id: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["CorrectStatementRequest"];
            };
        };
        responses: {
            /** @description A stored statement, and what it changed. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["CreatedStatement"];
                };
            };
            /** @description The request, the agent or a limit does not allow it. */
            "4XX": {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    "Retry-After": components["headers"]["RetryAfter"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Temporarily unavailable, or an internal error. */
            "5XX": {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    "Retry-After": components["headers"]["RetryAfter"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    getStatementHistory: {
        parameters: {
            query?: {
                /** @description The time for which to answer; default: now. */
                as_of?: number | string;
                /** @description Answer with what was known at this time; default: everything. */
                known_at?: number | string;
            };
            header?: {
                /** @description Id of the request in the daemon's log. The daemon creates one if it is missing or malformed. */
                "X-Request-Id"?: components["parameters"]["RequestId"];
            };
            path: {
                /**
                 * @description Id of the agent: 1-128 characters of any script.
                 * @example ann
                 */
                agent_id: string;
                /**
                 * @description Id of the statement.
                 * @example n1
                 */
                node_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description All versions of the topic of a statement. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["StatementHistory"];
                };
            };
            /** @description The request, the agent or a limit does not allow it. */
            "4XX": {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    "Retry-After": components["headers"]["RetryAfter"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Temporarily unavailable, or an internal error. */
            "5XX": {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    "Retry-After": components["headers"]["RetryAfter"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    retractStatement: {
        parameters: {
            query?: never;
            header?: {
                /** @description Id of the request in the daemon's log. The daemon creates one if it is missing or malformed. */
                "X-Request-Id"?: components["parameters"]["RequestId"];
            };
            path: {
                /**
                 * @description Id of the agent: 1-128 characters of any script.
                 * @example ann
                 */
                agent_id: string;
                /**
                 * @description Id of the statement.
                 * @example n1
                 */
                node_id: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["RetractStatementRequest"];
            };
        };
        responses: {
            /** @description A stored ruling. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["StoredRuling"];
                };
            };
            /** @description The request, the agent or a limit does not allow it. */
            "4XX": {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    "Retry-After": components["headers"]["RetryAfter"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Temporarily unavailable, or an internal error. */
            "5XX": {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    "Retry-After": components["headers"]["RetryAfter"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    searchStatements: {
        parameters: {
            query?: never;
            header?: {
                /** @description Id of the request in the daemon's log. The daemon creates one if it is missing or malformed. */
                "X-Request-Id"?: components["parameters"]["RequestId"];
            };
            path: {
                /**
                 * @description Id of the agent: 1-128 characters of any script.
                 * @example ann
                 */
                agent_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["SearchStatementsRequest"];
            };
        };
        responses: {
            /** @description The found statements. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["FoundStatements"];
                };
            };
            /** @description The request, the agent or a limit does not allow it. */
            "4XX": {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    "Retry-After": components["headers"]["RetryAfter"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Temporarily unavailable, or an internal error. */
            "5XX": {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    "Retry-After": components["headers"]["RetryAfter"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    getCauses: {
        parameters: {
            query?: {
                /** @description Most links of a path, 1-4; default: 3. */
                depth?: number;
                /** @description The time for which states are given; default: now. */
                as_of?: number | string;
                /** @description Answer with what was known at this time. */
                known_at?: number | string;
            };
            header?: {
                /** @description Id of the request in the daemon's log. The daemon creates one if it is missing or malformed. */
                "X-Request-Id"?: components["parameters"]["RequestId"];
            };
            path: {
                /**
                 * @description Id of the agent: 1-128 characters of any script.
                 * @example ann
                 */
                agent_id: string;
                /**
                 * @description The node.
                 * @example n1
                 */
                node_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Why something is so. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Causes"];
                };
            };
            /** @description The request, the agent or a limit does not allow it. */
            "4XX": {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    "Retry-After": components["headers"]["RetryAfter"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Temporarily unavailable, or an internal error. */
            "5XX": {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    "Retry-After": components["headers"]["RetryAfter"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    setImportance: {
        parameters: {
            query?: never;
            header?: {
                /** @description Id of the request in the daemon's log. The daemon creates one if it is missing or malformed. */
                "X-Request-Id"?: components["parameters"]["RequestId"];
            };
            path: {
                /**
                 * @description Id of the agent: 1-128 characters of any script.
                 * @example ann
                 */
                agent_id: string;
                /**
                 * @description The node.
                 * @example n1
                 */
                node_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["SetImportanceRequest"];
            };
        };
        responses: {
            /** @description The importance of a node after a change. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["NodeImportance"];
                };
            };
            /** @description The request, the agent or a limit does not allow it. */
            "4XX": {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    "Retry-After": components["headers"]["RetryAfter"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Temporarily unavailable, or an internal error. */
            "5XX": {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    "Retry-After": components["headers"]["RetryAfter"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    getProfile: {
        parameters: {
            query?: {
                /**
                 * @description A name, I, or the id of an entity; default: the user.
                 * @example user
                 */
                entity?: string;
                /** @description The time for which to answer; default: now. */
                as_of?: number | string;
                /** @description Answer with what was known at this time; default: everything. */
                known_at?: number | string;
                /** @description Most tokens of the text; default: no limit. */
                token_budget?: number;
            };
            header?: {
                /** @description Id of the request in the daemon's log. The daemon creates one if it is missing or malformed. */
                "X-Request-Id"?: components["parameters"]["RequestId"];
            };
            path: {
                /**
                 * @description Id of the agent: 1-128 characters of any script.
                 * @example ann
                 */
                agent_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The knowledge about an entity. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Profile"];
                };
            };
            /** @description The request, the agent or a limit does not allow it. */
            "4XX": {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    "Retry-After": components["headers"]["RetryAfter"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Temporarily unavailable, or an internal error. */
            "5XX": {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    "Retry-After": components["headers"]["RetryAfter"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    listConflicts: {
        parameters: {
            query?: {
                /** @description Most items on the page, 1-1000; default 100. `limits.max_page_size` sets the limit. */
                page_size?: number;
                /** @description `next_page_token` of the page before; empty for the first page. */
                page_token?: string;
                /** @description The time for which to answer; default: now. */
                as_of?: number | string;
            };
            header?: {
                /** @description Id of the request in the daemon's log. The daemon creates one if it is missing or malformed. */
                "X-Request-Id"?: components["parameters"]["RequestId"];
            };
            path: {
                /**
                 * @description Id of the agent: 1-128 characters of any script.
                 * @example ann
                 */
                agent_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of conflicts. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ConflictPage"];
                };
            };
            /** @description The request, the agent or a limit does not allow it. */
            "4XX": {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    "Retry-After": components["headers"]["RetryAfter"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Temporarily unavailable, or an internal error. */
            "5XX": {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    "Retry-After": components["headers"]["RetryAfter"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    resolveConflict: {
        parameters: {
            query?: never;
            header?: {
                /** @description Id of the request in the daemon's log. The daemon creates one if it is missing or malformed. */
                "X-Request-Id"?: components["parameters"]["RequestId"];
            };
            path: {
                /**
                 * @description Id of the agent: 1-128 characters of any script.
                 * @example ann
                 */
                agent_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ResolveConflictRequest"];
            };
        };
        responses: {
            /** @description A stored ruling. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["StoredRuling"];
                };
            };
            /** @description The request, the agent or a limit does not allow it. */
            "4XX": {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    "Retry-After": components["headers"]["RetryAfter"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Temporarily unavailable, or an internal error. */
            "5XX": {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    "Retry-After": components["headers"]["RetryAfter"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    listMerges: {
        parameters: {
            query?: {
                /** @description Most items on the page, 1-1000; default 100. `limits.max_page_size` sets the limit. */
                page_size?: number;
                /** @description `next_page_token` of the page before; empty for the first page. */
                page_token?: string;
            };
            header?: {
                /** @description Id of the request in the daemon's log. The daemon creates one if it is missing or malformed. */
                "X-Request-Id"?: components["parameters"]["RequestId"];
            };
            path: {
                /**
                 * @description Id of the agent: 1-128 characters of any script.
                 * @example ann
                 */
                agent_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of proposals. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["MergePage"];
                };
            };
            /** @description The request, the agent or a limit does not allow it. */
            "4XX": {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    "Retry-After": components["headers"]["RetryAfter"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Temporarily unavailable, or an internal error. */
            "5XX": {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    "Retry-After": components["headers"]["RetryAfter"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    mergeEntities: {
        parameters: {
            query?: never;
            header?: {
                /** @description Id of the request in the daemon's log. The daemon creates one if it is missing or malformed. */
                "X-Request-Id"?: components["parameters"]["RequestId"];
            };
            path: {
                /**
                 * @description Id of the agent: 1-128 characters of any script.
                 * @example ann
                 */
                agent_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["MergeEntitiesRequest"];
            };
        };
        responses: {
            /** @description A stored ruling. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["StoredRuling"];
                };
            };
            /** @description The request, the agent or a limit does not allow it. */
            "4XX": {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    "Retry-After": components["headers"]["RetryAfter"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Temporarily unavailable, or an internal error. */
            "5XX": {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    "Retry-After": components["headers"]["RetryAfter"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    rejectMerge: {
        parameters: {
            query?: never;
            header?: {
                /** @description Id of the request in the daemon's log. The daemon creates one if it is missing or malformed. */
                "X-Request-Id"?: components["parameters"]["RequestId"];
            };
            path: {
                /**
                 * @description Id of the agent: 1-128 characters of any script.
                 * @example ann
                 */
                agent_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["MergeEntitiesRequest"];
            };
        };
        responses: {
            /** @description A stored ruling. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["StoredRuling"];
                };
            };
            /** @description The request, the agent or a limit does not allow it. */
            "4XX": {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    "Retry-After": components["headers"]["RetryAfter"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Temporarily unavailable, or an internal error. */
            "5XX": {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    "Retry-After": components["headers"]["RetryAfter"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    giveFeedback: {
        parameters: {
            query?: never;
            header?: {
                /** @description Id of the request in the daemon's log. The daemon creates one if it is missing or malformed. */
                "X-Request-Id"?: components["parameters"]["RequestId"];
            };
            path: {
                /**
                 * @description Id of the agent: 1-128 characters of any script.
                 * @example ann
                 */
                agent_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["GiveFeedbackRequest"];
            };
        };
        responses: {
            /** @description A stored ruling. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["StoredRuling"];
                };
            };
            /** @description The request, the agent or a limit does not allow it. */
            "4XX": {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    "Retry-After": components["headers"]["RetryAfter"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Temporarily unavailable, or an internal error. */
            "5XX": {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    "Retry-After": components["headers"]["RetryAfter"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    listRulings: {
        parameters: {
            query?: {
                /** @description Most items on the page, 1-1000; default 100. `limits.max_page_size` sets the limit. */
                page_size?: number;
                /** @description `next_page_token` of the page before; empty for the first page. */
                page_token?: string;
                /** @description Only rulings of these kinds. Over REST separated by commas. */
                kinds?: ("merge" | "settle" | "correct" | "retract" | "pin" | "unpin" | "vote" | "distinct" | "cause")[];
            };
            header?: {
                /** @description Id of the request in the daemon's log. The daemon creates one if it is missing or malformed. */
                "X-Request-Id"?: components["parameters"]["RequestId"];
            };
            path: {
                /**
                 * @description Id of the agent: 1-128 characters of any script.
                 * @example ann
                 */
                agent_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of rulings. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RulingPage"];
                };
            };
            /** @description The request, the agent or a limit does not allow it. */
            "4XX": {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    "Retry-After": components["headers"]["RetryAfter"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Temporarily unavailable, or an internal error. */
            "5XX": {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    "Retry-After": components["headers"]["RetryAfter"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    undoRuling: {
        parameters: {
            query?: never;
            header?: {
                /** @description Id of the request in the daemon's log. The daemon creates one if it is missing or malformed. */
                "X-Request-Id"?: components["parameters"]["RequestId"];
            };
            path: {
                /**
                 * @description Id of the agent: 1-128 characters of any script.
                 * @example ann
                 */
                agent_id: string;
                /**
                 * @description Id of the ruling.
                 * @example r1
                 */
                ruling_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A stored ruling. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["StoredRuling"];
                };
            };
            /** @description The request, the agent or a limit does not allow it. */
            "4XX": {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    "Retry-After": components["headers"]["RetryAfter"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Temporarily unavailable, or an internal error. */
            "5XX": {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    "Retry-After": components["headers"]["RetryAfter"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    consolidate: {
        parameters: {
            query?: never;
            header?: {
                /** @description Id of the request in the daemon's log. The daemon creates one if it is missing or malformed. */
                "X-Request-Id"?: components["parameters"]["RequestId"];
            };
            path: {
                /**
                 * @description Id of the agent: 1-128 characters of any script.
                 * @example ann
                 */
                agent_id: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["ConsolidateRequest"];
            };
        };
        responses: {
            /** @description The outcome of a consolidation. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Consolidated"];
                };
            };
            /** @description The request, the agent or a limit does not allow it. */
            "4XX": {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    "Retry-After": components["headers"]["RetryAfter"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Temporarily unavailable, or an internal error. */
            "5XX": {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    "Retry-After": components["headers"]["RetryAfter"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    batchRecords: {
        parameters: {
            query?: never;
            header?: {
                /** @description Id of the request in the daemon's log. The daemon creates one if it is missing or malformed. */
                "X-Request-Id"?: components["parameters"]["RequestId"];
            };
            path: {
                /**
                 * @description Id of the agent: 1-128 characters of any script.
                 * @example ann
                 */
                agent_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["BatchRecordsRequest"];
            };
        };
        responses: {
            /** @description The result of each operation. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RecordResults"];
                };
            };
            /** @description The request, the agent or a limit does not allow it. */
            "4XX": {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    "Retry-After": components["headers"]["RetryAfter"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Temporarily unavailable, or an internal error. */
            "5XX": {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    "Retry-After": components["headers"]["RetryAfter"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    listTools: {
        parameters: {
            query?: {
                /** @description Form of the declarations: openai, anthropic or mcp. */
                format?: "openai" | "anthropic" | "mcp";
                /** @description Language of the descriptions: en or zh. */
                lang?: "en" | "zh";
            };
            header?: {
                /** @description Id of the request in the daemon's log. The daemon creates one if it is missing or malformed. */
                "X-Request-Id"?: components["parameters"]["RequestId"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Declarations of tools, to be passed to a language model. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ToolList"];
                };
            };
            /** @description The request, the agent or a limit does not allow it. */
            "4XX": {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    "Retry-After": components["headers"]["RetryAfter"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Temporarily unavailable, or an internal error. */
            "5XX": {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    "Retry-After": components["headers"]["RetryAfter"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    getToolPrompt: {
        parameters: {
            query?: {
                /** @description Language of the instructions: en or zh. */
                lang?: "en" | "zh";
                /** @description assistant: a model that talks with the user; archivist: one that stores a finished conversation. */
                role?: "assistant" | "archivist";
            };
            header?: {
                /** @description Id of the request in the daemon's log. The daemon creates one if it is missing or malformed. */
                "X-Request-Id"?: components["parameters"]["RequestId"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Instructions on the tools. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ToolPrompt"];
                };
            };
            /** @description The request, the agent or a limit does not allow it. */
            "4XX": {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    "Retry-After": components["headers"]["RetryAfter"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Temporarily unavailable, or an internal error. */
            "5XX": {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    "Retry-After": components["headers"]["RetryAfter"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    callTool: {
        parameters: {
            query?: never;
            header?: {
                /** @description Id of the request in the daemon's log. The daemon creates one if it is missing or malformed. */
                "X-Request-Id"?: components["parameters"]["RequestId"];
            };
            path: {
                /**
                 * @description Id of the agent: 1-128 characters of any script.
                 * @example ann
                 */
                agent_id: string;
                /**
                 * @description The name of a tool, such as recall.
                 * @example recall
                 */
                name: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["CallToolRequest"];
            };
        };
        responses: {
            /** @description The outcome of a call. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ToolResult"];
                };
            };
            /** @description The request, the agent or a limit does not allow it. */
            "4XX": {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    "Retry-After": components["headers"]["RetryAfter"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Temporarily unavailable, or an internal error. */
            "5XX": {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    "Retry-After": components["headers"]["RetryAfter"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    getMe: {
        parameters: {
            query?: never;
            header?: {
                /** @description Id of the request in the daemon's log. The daemon creates one if it is missing or malformed. */
                "X-Request-Id"?: components["parameters"]["RequestId"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The rights of the caller's key. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Me"];
                };
            };
            /** @description The request, the agent or a limit does not allow it. */
            "4XX": {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    "Retry-After": components["headers"]["RetryAfter"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Temporarily unavailable, or an internal error. */
            "5XX": {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    "Retry-After": components["headers"]["RetryAfter"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    getModel: {
        parameters: {
            query?: never;
            header?: {
                /** @description Id of the request in the daemon's log. The daemon creates one if it is missing or malformed. */
                "X-Request-Id"?: components["parameters"]["RequestId"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The current language model and embedding model. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ModelInfo"];
                };
            };
            /** @description The request, the agent or a limit does not allow it. */
            "4XX": {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    "Retry-After": components["headers"]["RetryAfter"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Temporarily unavailable, or an internal error. */
            "5XX": {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    "Retry-After": components["headers"]["RetryAfter"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    getScheduler: {
        parameters: {
            query?: never;
            header?: {
                /** @description Id of the request in the daemon's log. The daemon creates one if it is missing or malformed. */
                "X-Request-Id"?: components["parameters"]["RequestId"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The state of the compression scheduler. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SchedulerInfo"];
                };
            };
            /** @description The request, the agent or a limit does not allow it. */
            "4XX": {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    "Retry-After": components["headers"]["RetryAfter"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Temporarily unavailable, or an internal error. */
            "5XX": {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    "Retry-After": components["headers"]["RetryAfter"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    getMetrics: {
        parameters: {
            query?: never;
            header?: {
                /** @description Id of the request in the daemon's log. The daemon creates one if it is missing or malformed. */
                "X-Request-Id"?: components["parameters"]["RequestId"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The metrics in the text format of Prometheus. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "text/plain": string;
                };
            };
            /** @description The request, the agent or a limit does not allow it. */
            "4XX": {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    "Retry-After": components["headers"]["RetryAfter"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Temporarily unavailable, or an internal error. */
            "5XX": {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    "Retry-After": components["headers"]["RetryAfter"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    getHealth: {
        parameters: {
            query?: never;
            header?: {
                /** @description Id of the request in the daemon's log. The daemon creates one if it is missing or malformed. */
                "X-Request-Id"?: components["parameters"]["RequestId"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The process is alive. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Health"];
                };
            };
            /** @description The request, the agent or a limit does not allow it. */
            "4XX": {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    "Retry-After": components["headers"]["RetryAfter"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Temporarily unavailable, or an internal error. */
            "5XX": {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    "Retry-After": components["headers"]["RetryAfter"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    getReadiness: {
        parameters: {
            query?: never;
            header?: {
                /** @description Id of the request in the daemon's log. The daemon creates one if it is missing or malformed. */
                "X-Request-Id"?: components["parameters"]["RequestId"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Whether the daemon can do its work. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Readiness"];
                };
            };
            /** @description Unavailable: no request is accepted. */
            503: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Readiness"];
                };
            };
            /** @description The request, the agent or a limit does not allow it. */
            "4XX": {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    "Retry-After": components["headers"]["RetryAfter"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Temporarily unavailable, or an internal error. */
            "5XX": {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    "Retry-After": components["headers"]["RetryAfter"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
}
