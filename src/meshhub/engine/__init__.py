"""Engines run chains, and stop those that exceed their time or resources. A registry has exactly one engine.

When a deadline passes, `supervision` detects it, and `isolated` kills the job.

Engines:
    contract            Task, Cancel, and the interface of every engine
    in_process          engine that runs a task in the calling thread; deadlines take effect between steps
    isolated            engine that runs each task in a worker process, and kills the process when the task is over

The parent's side of a worker process:
    task_slots          right to run a task; queue of the tasks that wait for it
    process_start       start a worker process: fork server, environment, forks of this program
    worker_process      a started worker process: its pipe, how to kill it, how it ended
    spare_workers       workers that wait for their first task
    reserved_workers    idle workers that wait for another task of their caller
    question_workers    workers that call sniffers and checks of options of installed plug-ins
    supervision         wait for the response of one worker: deadline, cancellation, crash, limits
    usage               measure files, memory and processes of a job against its limits
    descendants         find and kill every process that a job started
    results             check the files that a worker wrote, and move them to the target

Inside a worker process:
    preload             modules that a fork server imports once for all workers
    preload_libraries   large libraries, for the fork server of the tasks that use them
    worker              receive tasks, run them, respond
    worker_state        state of a worker that one task could leave to the next
    limits              limits of one job, and how a process applies them to itself

For the registry:
    run_options         keywords that its methods share
    run_task            run a task, and inform the listeners of plug-ins
    async_twin          coroutines that call a method in a thread

Shared:
    scratch             temporary folders, and the removal of those that a killed program left
    logs                log lines as text or JSON
"""
