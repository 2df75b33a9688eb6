"""Questions to begin with about the demo database."""

from common.text import Text

DEMO_QUESTIONS = (
    Text("查询各服务区的营业收入排行", "Revenue ranking by service area"),
    Text("最近7天车流量最大的5个服务区", "Top 5 service areas by traffic in the last 7 days"),
    Text("上个月各类别店铺的营业收入", "Revenue by shop category last month"),
    Text("每个公司有多少个服务区？", "How many service areas does each company have?"),
)
