/** Show what a check found as a notification. */
$(function () {
    function MeshhubViewModel() {
        this.onDataUpdaterPluginMessage = function (plugin, data) {
            if (plugin !== "meshhub") return;
            new PNotify({
                title: _.escape(data.path),
                text: _.escape(data.message),
                type: data.verdict === "will_not_print" ? "error" : "notice",
                hide: false,
            });
        };
    }
    OCTOPRINT_VIEWMODELS.push({ construct: MeshhubViewModel, dependencies: [], elements: [] });
});
